"""Small files that come with the package."""
