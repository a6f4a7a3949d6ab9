```python
from servers import crm

summary = crm.get_pipeline_summary(group_by="region", currency="USD")
print("\n".join(f"- {g['key']}: {g['deals']} deals" for g in summary["groups"]))
result = {g["key"]: g["weighted"] for g in summary["groups"]}
```
