{{/*
The limits that this driver serves, as a CEL list: the vendor's and, with DRA, those by memory and compute and those
that Kubernetes names after a DeviceClass.
*/}}
{{- define "gcu.limits" -}}
{{- $limits := list "enflame.com/shared-gcu" "enflame.com/drs-gcu" -}}
{{- if not .Values.legacyResources.servedByScheduler -}}
{{- $limits = prepend $limits "enflame.com/gcu" -}}
{{- end -}}
{{- if include "gcu.dra" . -}}
{{- $limits = concat $limits (include "gcu.limits.measures" . | fromJsonArray) -}}
{{- end -}}
{{- if and (include "gcu.dra" .) (not .Values.legacyResources.servedByScheduler) -}}
{{- range include "gcu.classes" . | fromJsonArray -}}
{{- $limits = append $limits (printf "deviceclass.resource.kubernetes.io/%s" .) -}}
{{- end -}}
{{- end -}}
{{- toJson $limits -}}
{{- end -}}

{{/* The limits by memory and compute, as a CEL list: a pod may have both. */}}
{{- define "gcu.limits.measures" -}}
{{- toJson (list "enflame.com/gcu-memory" "enflame.com/gcu-core") -}}
{{- end -}}

{{/* Not empty where limits of new pods become claims, always or by the controller's decision. */}}
{{- define "gcu.limits.served" -}}
{{- if and (include "gcu.dra" .) (ne (toString .Values.legacyResources.enabled) "false") -}}true{{- end -}}
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

{{/* How a binding names it. While it is missing limits stay limits; Deny would refuse every pod of the cluster. */}}
{{- define "gcu.limits.paramRef" -}}
{{- if include "gcu.limits.decided" . -}}
paramRef:
  name: {{ include "gcu.limits.name" . }}
  namespace: {{ include "gcu.namespace" . | quote }}
  parameterNotFoundAction: Allow
{{- end -}}
{{- end -}}

{{/* CEL, of a Pod: whether a container has such a limit. */}}
{{- define "gcu.limits.present" -}}
(object.spec.containers + object.spec.?initContainers.orValue([])).exists(each, {{ include "gcu.limits" . }}.exists(resource, resource in each.?resources.?limits.orValue({})))
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
