{{/* The start of all names of namespaced objects; it carries the release, whose dots not every name may have. */}}
{{- define "gcu.fullname" -}}
{{- $release := .Release.Name | replace "." "-" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name $release -}}
{{- $release | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" $release .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/*
Cluster-scoped names do not carry the release: the driver's name is in use once in a cluster, and
a second release is refused by helm because these objects are the first one's.
*/}}
{{- define "gcu.driver" -}}gcu.enflame.com{{- end -}}

{{- define "gcu.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels of one of the two programs; takes (dict "root" $ "component" "agent"). */}}
{{- define "gcu.componentLabels" -}}
{{ include "gcu.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* What a workload's selector holds, which can never change: no version. */}}
{{- define "gcu.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "gcu.agent.name" -}}{{ include "gcu.fullname" . }}-agent{{- end -}}
{{- define "gcu.controller.name" -}}{{ include "gcu.fullname" . }}-controller{{- end -}}
{{- define "gcu.uninstall.name" -}}{{ include "gcu.fullname" . }}-uninstall{{- end -}}
{{- define "gcu.cleanup.name" -}}{{ include "gcu.fullname" . }}-cleanup{{- end -}}
{{- define "gcu.sweep.name" -}}{{ include "gcu.fullname" . }}-sweep{{- end -}}
{{- define "gcu.simulation.name" -}}{{ include "gcu.fullname" . }}-simulation{{- end -}}

{{- define "gcu.cards.name" -}}{{ include "gcu.fullname" . }}-cards{{- end -}}

{{- define "gcu.extender.name" -}}{{ include "gcu.fullname" . }}-extender{{- end -}}
{{- define "gcu.extender.serverSecret" -}}{{ .Values.extender.serverSecret | default (include "gcu.extender.name" .) }}{{- end -}}
{{- define "gcu.extender.clientSecret" -}}{{ .Values.extender.clientSecret | default (printf "%s-client" (include "gcu.extender.name" .)) }}{{- end -}}

{{/* Not empty where pods get GCUs by ResourceClaims, as the programs themselves decide it: DRA can be switched off. */}}
{{- define "gcu.dra" -}}
{{- $has := and (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version) (.Capabilities.APIVersions.Has "resource.k8s.io/v1") -}}
{{- if or (eq .Values.mode "dra") (and (eq .Values.mode "auto") $has) -}}true{{- end -}}
{{- end -}}

{{/* Not empty where two agents can serve one kubelet during an update. */}}
{{- define "gcu.sideBySide" -}}
{{- if semverCompare ">=1.33.0-0" .Capabilities.KubeVersion.Version -}}true{{- end -}}
{{- end -}}

{{/* Not empty where the server knows policies, and tells them on which node an agent runs. */}}
{{- define "gcu.policies" -}}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version -}}true{{- end -}}
{{- end -}}

{{/*
The extender's entry in a kube-scheduler's configuration; takes (dict "url" … "files" …), a folder
with the client's certificate.
*/}}
{{- define "gcu.extender.entry" -}}
# The path says in a pod's event whose call failed.
- urlPrefix: {{ .url }}/{{ include "gcu.driver" . }}
  filterVerb: filter
  prioritizeVerb: prioritize
  # Without it others are ended for a pod by a node's counts, whichever card has room then.
  preemptVerb: preempt
  bindVerb: bind
  # Its best node shall be taken: other scores reach some hundreds in all.
  weight: 100
  enableHTTPS: true
  # How long an extender that hangs holds up the next pods of this scheduler: docs/dev/extender.md.
  httpTimeout: 5s
  nodeCacheCapable: true
  # Without it nobody knows which card fits: pods that ask for one wait, and no others.
  ignorable: false
  managedResources:
  - {name: enflame.com/gcu, ignoredByScheduler: false}
  - {name: enflame.com/shared-gcu, ignoredByScheduler: false}
  - {name: enflame.com/drs-gcu, ignoredByScheduler: false}
  tlsConfig:
    serverName: {{ .serverName }}
    caFile: {{ .files }}/ca.crt
    certFile: {{ .files }}/tls.crt
    keyFile: {{ .files }}/tls.key
{{- end -}}

{{- define "gcu.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* The vendor's limits that give GCUs, as a CEL list. */}}
{{- define "gcu.limits" -}}
{{- list "enflame.com/gcu" "enflame.com/shared-gcu" "enflame.com/drs-gcu" | toJson -}}
{{- end -}}

{{/* CEL, of a Pod: whether a container has such a limit. */}}
{{- define "gcu.limits.present" -}}
(object.spec.containers + object.spec.?initContainers.orValue([])).exists(each, {{ include "gcu.limits" . }}.exists(resource, resource in each.?resources.?limits.orValue({})))
{{- end -}}

{{/* The validation that a Pod asks for one kind of GCU; the variable `resources` has which it asks for. */}}
{{- define "gcu.limits.oneKind" -}}
- expression: "size(variables.resources) <= 1"
  message: a pod asks for one kind of GCU
  messageExpression: >-
    "the pod asks for " + variables.resources.join(" and ") +
    ": a pod asks for one kind of GCU. Split it into several pods."
{{- end -}}

{{/* The names of the DeviceClasses that the chart installs, as a CEL list. */}}
{{- define "gcu.classes" -}}
{{- $names := list -}}
{{- range $path, $_ := .Files.Glob "files/resourceclasses/*.yaml" -}}
{{- $names = append $names (get ($.Files.Get $path | fromYaml).metadata "name") -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/*
Both programs serve the same probes, at the port that they are told. Takes the seconds before the
first one, which are Python's own: nobody listens yet, and the kubelet makes a warning of every probe
that fails.
*/}}
{{- define "gcu.probes" -}}
# Answered when the program is ready, or 30 s later.
startupProbe:
  httpGet: {path: /startz, port: probes}
  initialDelaySeconds: {{ . }}
  periodSeconds: 1
  timeoutSeconds: 40
  failureThreshold: 120
livenessProbe:
  httpGet: {path: /healthz, port: probes}
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: probes}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{/*
Which nodes the agent runs on: what the values say; where they say nothing, every node of a
simulation, and else the nodes that are known to have a GCU.
*/}}
{{- define "gcu.agent.affinity" -}}
{{- if .Values.agent.affinity -}}
{{ toYaml .Values.agent.affinity }}
{{- else if not (or .Values.simulation.enabled .Values.agent.nodeSelector) -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    # Labels of Node Feature Discovery: PCI class 12 (accelerators), vendor Enflame, or Tencent's
    # re-brand of it.
    - matchExpressions:
      - {key: feature.node.kubernetes.io/pci-1200_1e36.present, operator: In, values: ["true"]}
    - matchExpressions:
      - {key: feature.node.kubernetes.io/pci-1200_1ea0.present, operator: In, values: ["true"]}
    # Of the vendor's gcushare.
    - matchExpressions:
      - {key: enflame.com/gcushare, operator: In, values: ["true"]}
{{- end -}}
{{- end -}}
