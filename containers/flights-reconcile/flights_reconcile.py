"""flights-reconcile: what the summary of a day's flights must be, added up without the code that wrote it."""

from decimal import ROUND_HALF_EVEN, Decimal

from trueup import Reconcile


class FlightsReconcile(Reconcile):
    """Each flight is an event of its route and day; the comparison of both sides is trueup's."""

    def normalise(self, side, row):
        if side == "target":
            return row
        day = f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}"
        return {**row, "route": f"{row['origin']}#{row['carrier']}", "date": day}

    def fold(self, rows):
        return {
            "origin": rows[0]["origin"],
            "carrier": rows[0]["carrier"],
            "flights": len(rows),
            "cancelled": sum(flight["dep_time"] is None for flight in rows),
            **delays("departure", [flight["dep_delay"] for flight in rows]),
            **delays("arrival", [flight["arr_delay"] for flight in rows]),
            "air_minutes": sum(flight["air_time"] or 0 for flight in rows),
            "miles": sum(flight["distance"] for flight in rows if flight["dep_time"] is not None),
        }


def delays(what, minutes):
    """Of the delays that are known; without any, there is no mean and no longest one."""
    known = [delay for delay in minutes if delay is not None]
    figures = {f"{what}_delay_count": len(known), f"{what}_delay_sum": sum(known)}
    if not known:
        return {**figures, f"{what}_delay_mean": None, f"{what}_delay_max": None}
    mean = (Decimal(sum(known)) / len(known)).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
    return {**figures, f"{what}_delay_mean": mean, f"{what}_delay_max": max(known)}
