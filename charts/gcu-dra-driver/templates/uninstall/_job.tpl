{{/* The spec of a Job around an uninstall; takes (dict "root" $ "component" … "account" … "env" list "retries" …). */}}
{{- define "gcu.uninstall.job" -}}
{{- $values := .root.Values -}}
backoffLimit: {{ .retries }}
# Sooner than helm's own limit, which says less.
activeDeadlineSeconds: 240
ttlSecondsAfterFinished: 600
template:
  metadata:
    labels:
      {{- include "gcu.componentLabels" (dict "root" .root "component" .component) | nindent 6 }}
  spec:
    restartPolicy: Never
    serviceAccountName: {{ .account }}
    {{- with $values.imagePullSecrets }}
    imagePullSecrets: {{- toYaml . | nindent 4 }}
    {{- end }}
    enableServiceLinks: false
    securityContext:
      runAsNonRoot: true
      runAsUser: 65532
      runAsGroup: 65532
      seccompProfile: {type: RuntimeDefault}
    containers:
    - name: {{ .component | trimPrefix "uninstall-" }}
      image: {{ include "gcu.image" .root }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      command: [gcu-dra-{{ .component }}]
      {{- with .env }}
      env: {{- toYaml . | nindent 6 }}
      {{- end }}
      terminationMessagePolicy: FallbackToLogsOnError
      {{- with $values.controller.resources }}
      resources: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
    # It can run where the controller can.
    {{- with $values.controller.nodeSelector }}
    nodeSelector: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $values.controller.affinity }}
    affinity: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $values.controller.tolerations }}
    tolerations: {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* Annotations of what the check before an uninstall needs: made before it, gone after it. */}}
{{- define "gcu.uninstall.before" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: "-1"
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* Annotations of what is made after an uninstall before the cleanup, and gone after it. */}}
{{- define "gcu.uninstall.after" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: "-1"
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
