"""A function: `make.py` puts it into a zip."""


def handler(event, context):
    return {"greeting": f"hello {event['name']}"}
