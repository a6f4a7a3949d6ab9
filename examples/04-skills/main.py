from skills.count_by_region import by_region

result = {"open": by_region("Lead", "Open"), "qualified": by_region("Lead", "Qualified")}
