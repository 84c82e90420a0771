{{- define "jitney.name" -}}
{{- if contains "jitney" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-jitney" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "jitney.selector" -}}
app.kubernetes.io/name: jitney
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "jitney.labels" -}}
{{ include "jitney.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}
