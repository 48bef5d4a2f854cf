"""Co-design: which model meets a serving budget on the training compute there is, and what that costs in loss."""
