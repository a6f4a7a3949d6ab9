def by_region(object_type: str, status: str) -> dict:
    """How many records of a type with a status each region has."""
    counts = {}
    for region in ("EMEA", "North America", "LATAM", "APAC"):
        page = crm.search_records(
            object_type=object_type,
            limit=1,
            filters=[{"field": "Status", "op": "eq", "value": status}, {"field": "Region", "op": "eq", "value": region}],
        )
        counts[region] = page["total"]
    return counts
