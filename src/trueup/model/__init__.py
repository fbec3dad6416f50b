"""The values that cross a boundary. This package knows nobody."""
