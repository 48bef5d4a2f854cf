"""The functional forms, one file each. Whatever `Form` is found here is fitted, tested and listed."""
