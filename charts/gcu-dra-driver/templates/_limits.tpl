{{/*
The limits that this driver serves, as a CEL list: the vendor's, those by memory and compute and, with DRA, those that
Kubernetes names after a DeviceClass.
*/}}
{{- define "gcu.limits" -}}
{{- $limits := list "enflame.com/shared-gcu" "enflame.com/drs-gcu" -}}
{{- if not .Values.legacyResources.servedByScheduler -}}
{{- $limits = prepend $limits "enflame.com/gcu" -}}
{{- end -}}
{{- if or (include "gcu.dra" .) (include "gcu.limits.counted" .) -}}
{{- $limits = concat $limits (include "gcu.limits.measures" . | fromJsonArray) -}}
{{- end -}}
{{- if and (include "gcu.dra" .) (not .Values.legacyResources.servedByScheduler) -}}
{{- range include "gcu.classes" . | fromJsonArray -}}
{{- $limits = append $limits (printf "deviceclass.resource.kubernetes.io/%s" .) -}}
{{- end -}}
{{- end -}}
{{- toJson $limits -}}
{{- end -}}

{{/* The limits for which kube-scheduler itself makes claims, as a CEL list. */}}
{{- define "gcu.limits.ofScheduler" -}}
{{- $limits := list "enflame.com/gcu" -}}
{{- range concat (include "gcu.classes" . | fromJsonArray) .Values.ownDeviceClasses -}}
{{- $limits = append $limits (printf "deviceclass.resource.kubernetes.io/%s" .) -}}
{{- end -}}
{{- toJson $limits -}}
{{- end -}}

{{/* The fields of GcuConfig that ask for an amount, as a CEL list. */}}
{{- define "gcu.amounts.fields" -}}
{{- toJson (list "slices" "size" "memory" "cores" "isolation") -}}
{{- end -}}

{{/* The limits by memory and compute, as a CEL list: a pod may have both. */}}
{{- define "gcu.limits.measures" -}}
{{- toJson (list "enflame.com/gcu-memory" "enflame.com/gcu-core") -}}
{{- end -}}

{{/* Not empty where limits of new pods become claims, always or by the controller's decision. */}}
{{- define "gcu.limits.served" -}}
{{- if and (include "gcu.dra" .) (ne (toString .Values.legacyResources.enabled) "false") -}}true{{- end -}}
{{- end -}}

{{/*
Not empty where, without DRA, limits by memory and compute become slices or a size. Before Kubernetes 1.30 no policy would
refuse what cannot be translated.
*/}}
{{- define "gcu.limits.counted" -}}
{{- if and (not (include "gcu.dra" .)) (include "gcu.policies" .) (ne (toString .Values.legacyResources.enabled) "false") -}}true{{- end -}}
{{- end -}}

{{/* Not empty where the controller decides, by what nodes offer, whether they do: docs/adr/0029. */}}
{{- define "gcu.limits.decided" -}}
{{- if and (include "gcu.limits.served" .) (eq (toString .Values.legacyResources.enabled) "auto") -}}true{{- end -}}
{{- end -}}

{{/* The ServiceAccount that has the decision. */}}
{{- define "gcu.limits.name" -}}{{ include "gcu.fullname" . }}-limits{{- end -}}

{{/* CEL, of that ServiceAccount: whether limits become claims. */}}
{{- define "gcu.limits.condition" -}}
params.metadata.?annotations[?"gcu.enflame.com/limits-become-claims"].orValue("") == "true"
{{- end -}}

{{/* The names of the claim templates for limits (dra_driver/asks/templates.py), as a CEL string of a regular expression. */}}
{{- define "gcu.limits.templates" -}}
"^enflame-((gcu|part-gcu-devices|(shared-gcu|drs-gcu)(-devices)?)(-[1-9][0-9]{0,2}){1,32}|(fixed-share|best-effort)(-([1-9][0-9]{0,6}m)?([1-9][0-9]?c)?){1,32})$"
{{- end -}}

{{/*
CEL of a patch that adds something to a list of the pod; takes (list "the list" "its path" "what is added"), all in CEL. What is there already
is not written again: API servers from 1.37 on cannot put an object that they have decoded into a patch.
*/}}
{{- define "gcu.limits.appended" -}}
{{- $list := index . 0 }}{{ $path := index . 1 }}{{ $added := index . 2 -}}
(size({{ $list }}) == 0
  ? JSONPatch{op: "add", path: {{ $path }}, value: [{{ $added }}]}
  : JSONPatch{op: "add", path: {{ $path }} + "/-", value: {{ $added }}})
{{- end -}}

{{/* How a binding names it. While it is missing limits stay limits; Deny would refuse every pod of the cluster. */}}
{{- define "gcu.limits.paramRef" -}}
{{- if include "gcu.limits.decided" . -}}
paramRef:
  name: {{ include "gcu.limits.name" . }}
  namespace: {{ include "gcu.namespace" . | quote }}
  parameterNotFoundAction: Allow
{{- end -}}
{{- end -}}

{{/* CEL, of a container: whether it asks for GCUs by the limit named `resource`. A limit of 0 asks for nothing. */}}
{{- define "gcu.limits.asks" -}}
resource in each.?resources.?limits.orValue({}) && quantity(each.resources.limits[resource]).isGreaterThan(quantity("0"))
{{- end -}}

{{/* CEL, of a Pod: whether a container asks for GCUs. */}}
{{- define "gcu.limits.present" -}}
{{- include "gcu.limits.presentOf" (include "gcu.limits" .) -}}
{{- end -}}

{{/* The same of a CEL list of limits. */}}
{{- define "gcu.limits.presentOf" -}}
(object.spec.containers + object.spec.?initContainers.orValue([])).exists(each, {{ . }}.exists(resource, {{ include "gcu.limits.asks" . }}))
{{- end -}}

{{/* CEL, of a Pod: what its limits by memory and compute are for. */}}
{{- define "gcu.limits.isolation" -}}
object.metadata.?annotations[?"{{ include "gcu.driver" . }}/isolation"].orValue("fixed-share")
{{- end -}}

{{/* The validation that a Pod asks for one kind of GCU; the variable `resources` has which it asks for. */}}
{{- define "gcu.limits.oneKind" -}}
- expression: >-
    size(variables.resources) <= 1 ||
    variables.resources.all(resource, resource in {{ include "gcu.limits.measures" . }})
  message: a pod asks for one kind of GCU
  messageExpression: >-
    "the pod asks for " + variables.resources.join(" and ") +
    ": a pod asks for one kind of GCU. Split it into several pods."
{{- end -}}

{{/*
Variables of a policy for Pods: the `containers` that ask for GCUs, and the `resources` by which they do. Takes the limits, a CEL
list.
*/}}
{{- define "gcu.limits.variables" -}}
- name: containers
  expression: >-
    (object.spec.containers + object.spec.?initContainers.orValue([])).filter(each,
      {{ . }}.exists(resource, {{ include "gcu.limits.asks" . }}))
- name: resources
  expression: >-
    {{ . }}.filter(resource,
      variables.containers.exists(each, {{ include "gcu.limits.asks" . }}))
{{- end -}}

{{/* The validations of amounts and of the isolation, beside these variables. */}}
{{- define "gcu.limits.amountsValid" -}}
{{- $tooMuch := `quantity(each.resources.limits[?"%s"].orValue("0")).isGreaterThan(quantity("%s"))` }}
{{- $tooMuchCompute := printf $tooMuch "enflame.com/gcu-core" "99" -}}
- expression: {{ printf "!variables.containers.exists(each, %s)" $tooMuchCompute | quote }}
  messageExpression: >-
    "container " + variables.containers.filter(each, {{ $tooMuchCompute }}).map(each, each.name).join(", ") +
    ": the limit enflame.com/gcu-core is 1 to 99 percent of one card. For a whole card, use the limit enflame.com/gcu."
- expression: {{ printf "!variables.containers.exists(each, %s)" (printf $tooMuch "enflame.com/gcu-memory" "9999999") | quote }}
  message: the limit enflame.com/gcu-memory is a number of MiB, such as 20480.
- expression: {{ printf "!variables.resources.exists(each, each in %s) || %s in [\"fixed-share\", \"best-effort\"]" (include "gcu.limits.measures" .) (include "gcu.limits.isolation" .) | quote }}
  message: >-
    the annotation gcu.enflame.com/isolation is fixed-share or best-effort. No isolation of GCUs lends idle compute, as burst-share does.
{{- end -}}
