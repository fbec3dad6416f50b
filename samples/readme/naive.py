import csv
import sys
from datetime import date, timedelta

day, end = date.fromisoformat(sys.argv[1]), date.fromisoformat(sys.argv[2])
while day < end:
    with open(f"flights/{day}.csv") as file:
        for flight in csv.DictReader(file):
            if flight["dep_delay"] != "NA":
                print(f"put {day} {flight['carrier']} {flight['flight']} {flight['dep_delay']}")
    day += timedelta(days=1)
