// {{line .task}}
{{- if .inputs}}
const inputs = {{.inputs}};
{{- end}}
{{- range .skills}}
// A saved program may fit: {{line .use}}
{{- end}}
const tools = {
{{- range .tools}}
  // {{line .definition}}
  {{json .name}}: {{.name}},
{{- end}}
};
// Call them with await, filter and join what they answer here, and return only what is asked for.
return Object.keys(tools);
