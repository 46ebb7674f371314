{{- /* Labels of every object, besides app.kubernetes.io/name and app.kubernetes.io/part-of. */ -}}
{{- define "muster-agent.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "muster-agent.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.tag }}:{{ . }}{{ end }}
{{- end }}

{{- /* The suffix of the names of Secrets and of the Lease of an agent whose hub has a name. */ -}}
{{- define "muster-agent.suffix" -}}
{{- with .Values.hub }}-{{ . }}{{ end }}
{{- end }}
