"""``--download``: one ``config.json`` from the Hugging Face hub, only when asked for by name."""

import re
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from ridgeline.core.errors import InputError

HUB = "https://huggingface.co"
_ID = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
_TIMEOUT_S = 20
_LIMIT_BYTES = 4 * 2**20


def fetch_config(hub_id: str) -> tuple[bytes, str]:
    """The content and address of ``config.json``. Raises `InputError` offline, for an unknown id or a gated one."""
    if not _ID.match(hub_id):
        hint = "write it as owner/name, as on the model's page"
        raise InputError.expected("a hub id such as owner/name", hub_id, where="--download", hint=hint)
    address = f"{HUB}/{hub_id}/resolve/main/config.json"
    try:
        with urlopen(address, timeout=_TIMEOUT_S) as answer:
            content: bytes = answer.read(_LIMIT_BYTES)
    except HTTPError as error:
        hint = "a model behind a login: download its config.json yourself" if error.code in (401, 403) else ""
        raise InputError.expected("a public config.json", f"HTTP {error.code}", where=address, hint=hint) from error
    except (URLError, TimeoutError, OSError) as error:
        reason = str(getattr(error, "reason", error))
        hint = "without a network, give the path of a config.json instead"
        raise InputError.expected("an answer from the hub", reason, where=address, hint=hint) from error
    return content, address
