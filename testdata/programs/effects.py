from contextlib import contextmanager
from servers import crm, chat

@contextmanager
def temporary_leads(*leads):
    made = [crm.create_record(object_type="Lead", data=lead) for lead in leads]
    try:
        yield made
    finally:
        for m in made:
            crm.delete_record("Lead", m["id"])

def left():
    return crm.search_records("Lead", [{"field": "Company", "op": "eq", "value": "Fjord Robotics"}], limit=1)["total"]

with temporary_leads({"LastName": "Halvorsen", "Company": "Fjord Robotics"}, {"LastName": "Ibsen", "Company": "Fjord Robotics"}) as leads:
    first, *_ = leads
    crm.update_record(objectType="Lead", recordId=first["id"], data={"Score": 77}, ifVersion=first["version"])
    try:
        crm.update_record(objectType="Lead", recordId=first["id"], data={"Score": 12}, ifVersion=first["version"])
    except ToolError as err:
        conflict = err.message.split(":")[0]
    during = left()

posted = chat.send_message("random", f"{during} leads :tada:")
chat.add_reaction(channel=posted["channel"], ts=posted["ts"], name="tada")
chat.delete_message(**{k: posted[k] for k in ("channel", "ts")})
result = {"during": during, "after": left(), "conflict": conflict}
