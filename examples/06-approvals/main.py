# Writing asks a person, who sees the call and the whole program.
readme = files.read_file(path="/srv/nordlys/README.md")
files.write_file(path="/srv/nordlys/reports/README.md", content=readme)
result = {"lines": len(readme.strip().split("\n"))}
