"""What each serving technique buys."""
