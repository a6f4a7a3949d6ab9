# {{line .task}}
{{- if .inputs}}
inputs = json.loads({{json .inputs}})
{{- end}}
{{- range .skills}}
# A saved program may fit: {{line .use}}
{{- end}}
tools = {
{{- range .tools}}
    # {{line .definition}}
    {{json .name}}: {{.name}},
{{- end}}
}
# Call them, filter and join what they answer here, and give result only what is asked for.
result = list(tools)
