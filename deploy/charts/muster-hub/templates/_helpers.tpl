{{- /* Labels of every object, besides app.kubernetes.io/name and app.kubernetes.io/part-of. */ -}}
{{- define "muster-hub.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "muster-hub.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.tag }}:{{ . }}{{ end }}
{{- end }}

{{- /* True if a namespace does not exist, or belongs to this release. Arguments: the root context, the name. */ -}}
{{- define "muster-hub.ownsNamespace" -}}
{{- $root := index . 0 }}
{{- $namespace := lookup "v1" "Namespace" "" (index . 1) }}
{{- if or (not $namespace) (eq $root.Release.Name (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $namespace)) -}}
true
{{- end }}
{{- end }}
