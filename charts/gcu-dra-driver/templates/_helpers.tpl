{{/* The start of all names of namespaced objects; it carries the release, whose dots not every name may have. */}}
{{- define "gcu.fullname" -}}
{{- $release := .Release.Name | replace "." "-" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- ternary $release (printf "%s-%s" $release $name) (contains $name $release) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gcu.namespace" -}}{{ .Values.namespaceOverride | default .Release.Namespace }}{{- end -}}

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
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
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
{{- define "gcu.agent.account" -}}{{ .Values.agent.serviceAccount.name | default (include "gcu.agent.name" .) }}{{- end -}}
{{- define "gcu.controller.account" -}}{{ .Values.controller.serviceAccount.name | default (include "gcu.controller.name" .) }}{{- end -}}
{{- define "gcu.controller.name" -}}{{ include "gcu.fullname" . }}-controller{{- end -}}
{{/* Whether agents write labels or annotations of their Nodes. */}}
{{- define "gcu.writesNodes" -}}{{ if or .Values.nodeLabels.enabled (not (include "gcu.dra" .)) }}true{{ end }}{{- end -}}
{{- define "gcu.uninstall.name" -}}{{ include "gcu.fullname" . }}-uninstall{{- end -}}
{{- define "gcu.simulation.name" -}}{{ include "gcu.fullname" . }}-simulation{{- end -}}

{{- define "gcu.cards.name" -}}{{ include "gcu.fullname" . }}-cards{{- end -}}

{{- define "gcu.extender.name" -}}{{ include "gcu.fullname" . }}-extender{{- end -}}
{{- define "gcu.extender.serverSecret" -}}{{ .Values.extender.serverSecret | default (include "gcu.extender.name" .) }}{{- end -}}
{{- define "gcu.extender.clientSecret" -}}{{ .Values.extender.clientSecret | default (printf "%s-client" (include "gcu.extender.name" .)) }}{{- end -}}

{{/* Not empty where the extender's client is the cluster's own kube-scheduler: then it is reached from outside its pod. */}}
{{- define "gcu.extender.forOthers" -}}
{{- if not (or (include "gcu.dra" .) .Values.extender.schedulerImage) -}}true{{- end -}}
{{- end -}}

{{/* The day on which helm issued the extender's certificates. */}}
{{- define "gcu.extender.issued" -}}
{{- $name := include "gcu.extender.name" . -}}
{{- include "gcu.certificates.issued" (list . $name (printf "%s-client" $name) (printf "%s-authority" $name)) -}}
{{- end -}}

{{/*
Not empty where the controller serves an admission webhook: for what policies do elsewhere, or for kube-scheduler: no policy can
look up whose claims a pod has, or which cards there are.
*/}}
{{- define "gcu.webhook" -}}
{{- if or (include "gcu.webhook.forPolicies" .) (include "gcu.byScheduler" .) -}}true{{- end -}}
{{- end -}}
{{/*
Not empty where it does what mutating policies do elsewhere: before Kubernetes 1.36 API servers drop amounts of claims, and have
no such policies; without DRA the controller alone knows the cards by which limits are translated.
*/}}
{{- define "gcu.webhook.forPolicies" -}}
{{- $below := and (include "gcu.dra" .) (semverCompare "<1.36.0-0" (include "gcu.kubernetes" .)) -}}
{{- if or $below (include "gcu.limits.counted" .) -}}true{{- end -}}
{{- end -}}
{{- define "gcu.webhook.name" -}}{{ include "gcu.fullname" . }}-webhook{{- end -}}
{{- define "gcu.webhook.serverSecret" -}}{{ .Values.webhook.serverSecret | default (include "gcu.webhook.name" .) }}{{- end -}}

{{/* The version that the API server plays: its programs' one, unless somebody started it with --emulated-version. */}}
{{- define "gcu.kubernetes" -}}{{ .Values.kubernetesVersion | default .Capabilities.KubeVersion.Version }}{{- end -}}

{{/* Not empty where pods get GCUs by ResourceClaims, as the programs themselves decide it: DRA can be switched off. */}}
{{- define "gcu.dra" -}}
{{- $has := and (semverCompare ">=1.34.0-0" (include "gcu.kubernetes" .)) (.Capabilities.APIVersions.Has "resource.k8s.io/v1") -}}
{{- if or (eq .Values.mode "dra") (and (eq .Values.mode "auto") $has) -}}true{{- end -}}
{{- end -}}

{{/*
The version of the cluster's kube-scheduler: schedulerVersion, or the oldest one that the images of its pods name. Empty where
neither says it, as in `helm template`, or where one of these images has no version. Helm may list pods: it could not create the
controller's role otherwise. All templates share one answer, and the context has it: kube-system may have thousands of pods.
*/}}
{{- define "gcu.schedulerVersion" -}}
{{- if not (hasKey . "gcuSchedulerVersion") -}}
{{- $versions := list -}}
{{- if .Values.schedulerVersion -}}
{{- $versions = list .Values.schedulerVersion -}}
{{- else if .Values.rbac.create -}}
{{- range $pod := (lookup "v1" "Pod" "kube-system" "").items -}}
{{- if eq (dig "labels" "component" "" $pod.metadata) "kube-scheduler" -}}
{{- $images := list -}}
{{- range $pod.spec.containers -}}{{- $images = append $images .image -}}{{- end -}}
{{- $named := regexFind "(^|[/ ])kube-scheduler:v?[0-9]+[.][0-9]+[.][0-9]+" (join " " $images) -}}
{{- $versions = append $versions (regexFind "[0-9.]+$" $named) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $oldest := first $versions | default "" -}}
{{- range $version := $versions -}}
{{- if and $oldest (or (not $version) (semverCompare (printf "<%s" $oldest) $version)) -}}{{- $oldest = $version -}}{{- end -}}
{{- end -}}
{{- $_ := set . "gcuSchedulerVersion" $oldest -}}
{{- end -}}
{{- .gcuSchedulerVersion -}}
{{- end -}}

{{/*
With `allocator: auto`, why the controller allocates; empty where kube-scheduler does. A kube-scheduler is not newer than the
API server, and one minor version older at most: beside 1.37 it may still be one that allocates a card twice, beside 1.38 not.
*/}}
{{- define "gcu.allocator.obstacle" -}}
{{- $server := include "gcu.kubernetes" . -}}
{{- if not (include "gcu.dra" .) -}}pods get GCUs by limits
{{- else if semverCompare "<1.37.0-0" $server -}}the API server is Kubernetes {{ $server }}
{{- else if ne (include "gcu.sliceForm" .) "visible" -}}sliceForm is hidden
{{- else -}}
{{- $scheduler := include "gcu.schedulerVersion" . -}}
{{- if and $scheduler (semverCompare "<1.37.1-0" $scheduler) -}}kube-scheduler is {{ $scheduler }}, older than 1.37.1
{{- else if and (not $scheduler) (or (not .Values.rbac.create) (semverCompare "<1.38.0-0" $server)) -}}helm cannot read the version of kube-scheduler: set schedulerVersion
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Which program allocates, `controller` or `scheduler`: no template reads the value. */}}
{{- define "gcu.allocator" -}}
{{- if ne .Values.allocator "auto" -}}{{ .Values.allocator }}
{{- else if include "gcu.allocator.obstacle" . -}}controller
{{- else -}}scheduler
{{- end -}}
{{- end -}}

{{/* The same in words. */}}
{{- define "gcu.allocator.words" -}}
{{- if ne .Values.allocator "auto" -}}allocator is {{ .Values.allocator }}
{{- else -}}allocator is auto, which is {{ include "gcu.allocator" . }} here
{{- with include "gcu.allocator.obstacle" . }} ({{ . }}){{ end -}}
{{- end -}}
{{- end -}}

{{/* Not empty where kube-scheduler allocates. */}}
{{- define "gcu.byScheduler" -}}
{{- if and (include "gcu.dra" .) (eq (include "gcu.allocator" .) "scheduler") -}}true{{- end -}}
{{- end -}}

{{/* Not empty where, beside that, the controller names nodes. */}}
{{- define "gcu.nominates" -}}
{{- if and (include "gcu.byScheduler" .) .Values.nomination.enabled -}}true{{- end -}}
{{- end -}}

{{/*
What keeps kube-scheduler from allocating: `visible` or `hidden` slices. A setting, not a discovery by the agents: while a
cluster is upgraded, its API server may know device taints that its kube-scheduler ignores.
*/}}
{{- define "gcu.sliceForm" -}}
{{- if ne .Values.sliceForm "auto" -}}{{ .Values.sliceForm }}
{{- else if semverCompare ">=1.36.0-0" (include "gcu.kubernetes" .) -}}visible
{{- else -}}hidden
{{- end -}}
{{- end -}}

{{/*
Not empty where an agent may have to serve as a device plugin, if only to count cards. It is needed on the node for pods
that began before, too, so it is not what the server is now that decides.
*/}}
{{- define "gcu.devicePlugin" -}}
{{- if or (ne .Values.mode "dra") (ne (toString .Values.legacyResources.enabled) "false") -}}true{{- end -}}
{{- end -}}

{{/* Not empty where two agents can serve one kubelet during an update. */}}
{{- define "gcu.sideBySide" -}}
{{- if semverCompare ">=1.33.0-0" (include "gcu.kubernetes" .) -}}true{{- end -}}
{{- end -}}

{{/* Not empty where the server knows policies, and tells them on which node an agent runs. */}}
{{- define "gcu.policies" -}}
{{- if semverCompare ">=1.30.0-0" (include "gcu.kubernetes" .) -}}true{{- end -}}
{{- end -}}

{{/* The names by which the API server knows the accounts of the two programs. */}}
{{- define "gcu.agent.user" -}}system:serviceaccount:{{ include "gcu.namespace" . }}:{{ include "gcu.agent.account" . }}{{- end -}}
{{- define "gcu.controller.user" -}}system:serviceaccount:{{ include "gcu.namespace" . }}:{{ include "gcu.controller.account" . }}{{- end -}}

{{/*
Variables of a policy for agents: the node of the pod that the token is bound to, and its pool. A node's name
that is too long for its pool is cut there and told apart by a hash.
*/}}
{{- define "gcu.agent.variables" -}}
- name: ownNode
  expression: >-
    request.userInfo.extra[?"authentication.kubernetes.io/node-name"][0].orValue("")
- name: ownPool
  expression: >-
    "{{ include "gcu.driver" . }}/" + (variables.ownNode.size() > 237
    ? variables.ownNode.substring(0, 200) : variables.ownNode)
{{- end -}}

{{/* CEL, beside these variables: whether a pool is that of the agent's node. Takes the expression of the pool's name. */}}
{{- define "gcu.agent.isOwnPool" -}}
({{ . }} == variables.ownPool || variables.ownNode.size() > 237 && {{ . }}.startsWith(variables.ownPool))
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

{{/* CEL: the entries of managedFields that are not of a manager; takes (list object manager). */}}
{{- define "gcu.managers.others" -}}
{{ index . 0 }}.metadata.?managedFields.orValue([]).filter(each, each.?manager.orValue("") != {{ index . 1 | quote }})
{{- end -}}

{{- define "gcu.image" -}}
{{- with .Values.global.imageRegistry | default .Values.image.registry }}{{ . }}/{{ end -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* How a container mounts it. */}}
{{- define "gcu.token.mount" -}}
- {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
{{- end -}}

{{/*
The account's token, with what Kubernetes mounts beside it, as a volume that only the containers that need it mount.
Kubernetes' own volume is mounted in all of them. The kubelet renews the token at 80 % of its time. Not 3607 seconds,
as Kubernetes' own: API servers extend exactly these to a year.
*/}}
{{- define "gcu.token.volume" -}}
- name: token
  projected:
    sources:
    - serviceAccountToken: {path: token, expirationSeconds: 3600}
    - configMap:
        name: kube-root-ca.crt
        items: [{key: ca.crt, path: ca.crt}]
    - downwardAPI:
        items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]
{{- end -}}

{{/* CEL: whether the annotation `key` of a pod is one about GCUs, which the extender writes. */}}
{{- define "gcu.controller.podAnnotation" -}}
key.startsWith("enflame.com/gcu-") || key.startsWith("{{ include "gcu.driver" . }}/") || key == "assigned-containers"
{{- end -}}

{{/* The names of the DeviceClasses that the chart installs, as a CEL list. */}}
{{- define "gcu.classes" -}}
{{- $names := list -}}
{{- range $path, $_ := .Files.Glob "files/resourceclasses/*.yaml" -}}
{{- $names = append $names (get ($.Files.Get $path | fromYaml).metadata "name") -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The DeviceClass of cards for administrative access alone, which the webhook writes into claims. */}}
{{- define "gcu.adminClass" -}}admin-{{ include "gcu.driver" . }}{{- end -}}

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

{{/*
What a node needs for an agent, as `kubectl label` takes it; empty where an affinity decides. Of the default's labels the one that
people set: Node Feature Discovery sets the others.
*/}}
{{- define "gcu.agent.labels" -}}
{{- if .Values.agent.nodeSelector -}}
{{- $labels := list -}}
{{- range $key, $value := .Values.agent.nodeSelector -}}
{{- $labels = append $labels (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- join " " $labels -}}
{{- else if not (or .Values.agent.affinity .Values.simulation.enabled) -}}
enflame.com/gcushare=true
{{- end -}}
{{- end -}}
