"""What the image `counter` runs: a task of ECS that counts letters into a table."""

import os

import boto3

letters = sum(map(str.isalpha, os.environ["GREETING"]))
boto3.client("dynamodb").update_item(
    TableName="letters",
    Key={"id": {"S": "all"}},
    UpdateExpression="ADD letters :more",
    ExpressionAttributeValues={":more": {"N": str(letters)}},
)
print(f"{letters} letters")
