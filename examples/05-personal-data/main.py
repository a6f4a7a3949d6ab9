# A draft to the owner of a lead. The address passes through the program as a token: it is put back
# on the way to the mail server, and nowhere else.
import json
import re

lead = crm.search_records(object_type="Lead", filters=[{"field": "Status", "op": "eq", "value": "Qualified"}], limit=1)["records"][0]
mail.create_draft(to=[lead["Email"]], subject="Our talk", body=f"Dear {lead['FirstName']}, thank you for your time.")
drafts = mail.search_messages(query="in:draft", max_results=1)
found = mail.get_message(id=drafts["messages"][0]["id"])
result = {
    "addressInTheProgram": bool(re.fullmatch(r"\[EMAIL_\d+\]", lead["Email"])),
    "theDraftHasTheSame": lead["Email"] in json.dumps(found),
    "domain": pii.domain(lead["Email"]),
}
