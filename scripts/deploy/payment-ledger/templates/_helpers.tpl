{{- define "ledger.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{- define "ledger.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ledger.labels" -}}
{{ include "ledger.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "ledger.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* A Deployment. `component`: api or feeds; `roles`, `processes`; `readiness`: the path of its probe. */}}
{{- define "ledger.deployment" -}}
{{- $root := .root -}}
{{- $component := .component -}}
{{- $values := index $root.Values $component -}}
{{- /* Each Deployment does without the secret that only the other one uses. */ -}}
{{- $unused := get (dict "api" "EVIDENCE_SIGNING_KEY" "feeds" "API_KEY_PEPPER") $component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "ledger.name" $root }}-{{ $component }}
  labels:
    {{- include "ledger.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $component }}
spec:
  {{- if .replicas }}
  replicas: {{ .replicas }}
  {{- end }}
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  selector:
    matchLabels: &selector
      {{- include "ledger.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ $component }}
  template:
    metadata:
      labels:
        {{- include "ledger.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $component }}
      annotations:
        checksum/settings: {{ $root.Values.settings | toJson | sha256sum }}
        {{- with $root.Values.pod.annotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "ledger.name" $root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- /* The last term is SHUTDOWN_MAX_MS of src/settings/timeBudgets.ts, and a margin. */}}
      terminationGracePeriodSeconds: {{ add $root.Values.shutdown.preStopSeconds $root.Values.shutdown.delaySeconds 25 }}
      securityContext:
        runAsNonRoot: true
        {{- /* The user node of the image. */}}
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: { type: RuntimeDefault }
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: { matchLabels: *selector }
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.pod.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.pod.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ $component }}
          image: {{ $values.image | default (include "ledger.image" $root) }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          ports:
            - { name: http, containerPort: 8080 }
            - { name: metrics, containerPort: 9464 }
          envFrom:
            - configMapRef: { name: {{ include "ledger.name" $root }}-settings }
          env:
            - { name: NODE_ENV, value: production }
            - { name: PORT, value: '8080' }
            - { name: METRICS_HOST, value: 0.0.0.0 }
            - { name: METRICS_PORT, value: '9464' }
            - { name: LEDGER_DATA_DIR, value: /var/lib/ledger }
            - { name: LEDGER_ROLES, value: '{{ .roles }}' }
            - { name: LEDGER_PROCESSES, value: '{{ .processes }}' }
            - { name: SHUTDOWN_DELAY, value: {{ $root.Values.shutdown.delaySeconds }}s }
            - { name: OTEL_SERVICE_NAME, value: ledger-{{ $component }} }
            {{- if hasKey $root.Values.settings (printf "%s_FILE" $unused) }}
            - { name: {{ $unused }}_FILE, value: '' }
            {{- end }}
            {{- range $setting, $secret := $root.Values.secrets.env }}
            {{- if ne $setting $unused }}
            - name: {{ $setting }}
              valueFrom:
                secretKeyRef: { name: {{ $secret.name }}, key: {{ $secret.key }} }
            {{- end }}
            {{- end }}
          {{- /* Generous: a start waits for Postgres. */}}
          startupProbe:
            httpGet: { path: /livez, port: http }
            periodSeconds: 3
            timeoutSeconds: 2
            failureThreshold: 100
          livenessProbe:
            httpGet: { path: /livez, port: http }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 3
          readinessProbe:
            httpGet: { path: '{{ .readiness }}', port: http }
            periodSeconds: 5
            timeoutSeconds: 4
            failureThreshold: 2
          lifecycle:
            preStop: { sleep: { seconds: {{ $root.Values.shutdown.preStopSeconds }} } }
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          volumeMounts:
            - { name: data, mountPath: /var/lib/ledger }
            - { name: tmp, mountPath: /tmp }
            {{- range $index, $secret := $root.Values.secrets.files }}
            - { name: secret-{{ $index }}, mountPath: {{ $secret.mountPath }}, readOnly: true }
            {{- end }}
      volumes:
        - name: data
          {{- $values.dataVolume | default (dict "emptyDir" dict) | toYaml | nindent 10 }}
        - name: tmp
          emptyDir: {}
        {{- range $index, $secret := $root.Values.secrets.files }}
        - name: secret-{{ $index }}
          secret: { secretName: {{ $secret.name }} }
        {{- end }}
{{- end }}
