"""The API as boto3 calls it: JSON 1.1 over HTTP, one function per operation."""
