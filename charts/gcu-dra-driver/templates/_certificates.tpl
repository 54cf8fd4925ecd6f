{{/*
The day on which helm issued the certificates of these Secrets, which is today where it has them renewed: they are older than a
month, or one of them is not there. Takes (list $ secret…).
*/}}
{{- define "gcu.certificates.issued" -}}
{{- $root := first . -}}
{{- $known := list -}}
{{- range rest . -}}
{{- $found := lookup "v1" "Secret" (include "gcu.namespace" $root) . -}}
{{- $known = append $known (dig "metadata" "annotations" "gcu.enflame.com/issued" "" $found) -}}
{{- end -}}
{{- $issued := first $known -}}
{{- $age := sub (now | unixEpoch) (toDate "2006-01-02" $issued | unixEpoch) -}}
{{- if and (eq (uniq $known | len) 1) (lt $age (mul 30 86400)) -}}
{{ $issued }}
{{- else -}}
{{ dateInZone "2006-01-02" now "UTC" }}
{{- end -}}
{{- end -}}

{{/*
The data of the Secrets of a server and its authority and, where it has one, of its client, by the Secret's name, as YAML.
Takes (dict "root" $ "server" … "client" … "clientSubject" …): the server is the Service of that name, `client` may be empty.

An upgrade renews certificates that are older than a month. The authority stays: who trusts it reads its certificate when it
starts. Whoever has the authority's Secret can issue such certificates, and no pod mounts it.
*/}}
{{- define "gcu.certificates" -}}
{{- $root := .root -}}
{{- $namespace := include "gcu.namespace" $root -}}
{{- $issuer := printf "%s-authority" .server -}}
{{- $names := without (list $issuer .server .client) "" -}}
{{- $issued := include "gcu.certificates.issued" (prepend $names $root) -}}
{{- $secrets := dict -}}
{{- range $name := $names -}}
{{- with lookup "v1" "Secret" $namespace $name -}}
{{- if eq $issued (dig "metadata" "annotations" "gcu.enflame.com/issued" "" .) -}}
{{- $_ := set $secrets $name .data -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if ne (len $secrets) (len $names) -}}
{{- /* All of them anew. */ -}}
{{- $days := 365 -}}
{{- $authority := dict -}}
{{- $kept := lookup "v1" "Secret" $namespace $issuer -}}
{{- if $kept -}}
{{- $authority = buildCustomCert (index $kept.data "tls.crt") (index $kept.data "tls.key") -}}
{{- else -}}
{{- $authority = genCA $issuer 3650 -}}
{{- end -}}
{{- $pairs := dict $issuer $authority -}}
{{- $_ := set $pairs .server (genSignedCert .server (list "127.0.0.1") (list .server (printf "%s.%s.svc" .server $namespace)) $days $authority) -}}
{{- if .client -}}
{{- $_ := set $pairs .client (genSignedCert .clientSubject nil nil $days $authority) -}}
{{- end -}}
{{- $ca := dict "ca.crt" (b64enc $authority.Cert) -}}
{{- range $secret, $pair := $pairs -}}
{{- $_ := set $secrets $secret (merge (dict "tls.crt" (b64enc $pair.Cert) "tls.key" (b64enc $pair.Key)) $ca) -}}
{{- end -}}
{{- end -}}
{{ toYaml $secrets }}
{{- end -}}

{{/* These Secrets as objects; takes (dict "root" $ "issued" … "secrets" …); the secrets are those of gcu.certificates. */}}
{{- define "gcu.certificates.secrets" -}}
{{- range $secret, $data := .secrets }}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata:
  name: {{ $secret }}
  namespace: {{ include "gcu.namespace" $.root | quote }}
  labels:
    {{- include "gcu.componentLabels" (dict "root" $.root "component" "controller") | nindent 4 }}
  annotations:
    gcu.enflame.com/issued: {{ $.issued | quote }}
data:
  {{- toYaml $data | nindent 2 }}
{{- end }}
{{- end -}}
