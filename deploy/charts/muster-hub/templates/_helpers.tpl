{{- /* The labels that every object of the chart has, besides app.kubernetes.io/name and app.kubernetes.io/part-of. */ -}}
{{- define "muster-hub.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "muster-hub.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.tag }}:{{ . }}{{ end }}
{{- end }}
