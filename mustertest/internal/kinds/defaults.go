package kinds

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The functions in this file set the same defaults as the defaults packages of k8s.io/kubernetes, which cannot be
// imported.

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setPtr[T any](field **T, value T) {
	if *field == nil {
		*field = new(value)
	}
}

func defaultNamespace(obj runtime.Object) {
	ns := obj.(*corev1.Namespace)
	if ns.Name == "" {
		return
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

func prepareNamespace(obj Object) {
	name, _ := meta(obj)["name"].(string)
	labels, _ := meta(obj)["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
	}
	labels[corev1.LabelMetadataName] = name
	meta(obj)["labels"] = labels
	spec, _ := obj["spec"].(map[string]any)
	finalizers, _ := spec["finalizers"].([]any)
	if !slices.Contains(finalizers, any("kubernetes")) {
		finalizers = append(slices.Clone(finalizers), "kubernetes")
	}
	obj["spec"] = map[string]any{"finalizers": finalizers}
	obj["status"] = map[string]any{"phase": "Active"}
}

func defaultSecret(obj runtime.Object) {
	secret := obj.(*corev1.Secret)
	set(&secret.Type, corev1.SecretTypeOpaque)
	// In Kubernetes, the conversion to the internal version merges stringData.
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

func defaultEvent(runtime.Object) {}

func defaultNewEvent(obj runtime.Object) { _ = obj.(*eventsv1.Event) }

func defaultNode(obj runtime.Object) {
	node := obj.(*corev1.Node)
	if node.Status.Allocatable == nil {
		node.Status.Allocatable = node.Status.Capacity
	}
}

func defaultService(obj runtime.Object) {
	service := obj.(*corev1.Service)
	set(&service.Spec.SessionAffinity, corev1.ServiceAffinityNone)
	set(&service.Spec.Type, corev1.ServiceTypeClusterIP)
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		set(&port.Protocol, corev1.ProtocolTCP)
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	setPtr(&service.Spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer || service.Spec.Type == corev1.ServiceTypeNodePort {
		set(&service.Spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		setPtr(&service.Spec.AllocateLoadBalancerNodePorts, true)
	}
}

func defaultPVC(obj runtime.Object) {
	claim := obj.(*corev1.PersistentVolumeClaim)
	set(&claim.Status.Phase, corev1.ClaimPending)
	setPtr(&claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

func preparePVC(obj Object) { obj["status"] = map[string]any{"phase": "Pending"} }

func defaultPod(obj runtime.Object) {
	pod := obj.(*corev1.Pod)
	setPtr(&pod.Spec.EnableServiceLinks, true)
	set(&pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount)
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	defaultPodSpec(&pod.Spec)
}

func preparePod(obj Object) { obj["status"] = map[string]any{"phase": "Pending"} }

func gracefulPod(obj Object) bool {
	spec, _ := obj["spec"].(map[string]any)
	status, _ := obj["status"].(map[string]any)
	node, _ := spec["nodeName"].(string)
	return node != "" && status["phase"] != "Succeeded" && status["phase"] != "Failed"
}

func defaultPodSpec(spec *corev1.PodSpec) {
	set(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setPtr(&spec.TerminationGracePeriodSeconds, int64(30))
	set(&spec.DNSPolicy, corev1.DNSClusterFirst)
	set(&spec.SchedulerName, corev1.DefaultSchedulerName)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i])
	}
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
}

func defaultContainer(c *corev1.Container) {
	set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if tag := imageTag(c.Image); tag == "latest" {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			set(&from.FieldRef.APIVersion, "v1")
		}
	}
	for name, limit := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; !ok {
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			c.Resources.Requests[name] = limit
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe == nil {
			continue
		}
		set(&probe.TimeoutSeconds, 1)
		set(&probe.PeriodSeconds, 10)
		set(&probe.SuccessThreshold, 1)
		set(&probe.FailureThreshold, 3)
		if probe.HTTPGet != nil {
			set(&probe.HTTPGet.Path, "/")
			set(&probe.HTTPGet.Scheme, corev1.URISchemeHTTP)
		}
	}
}

func imageTag(image string) string {
	for i := len(image) - 1; i >= 0; i-- {
		switch image[i] {
		case '@':
			return "digest"
		case ':':
			return image[i+1:]
		case '/':
			return "latest"
		}
	}
	return "latest"
}

func defaultVolume(v *corev1.Volume) {
	const mode = int32(0o644)
	switch {
	case v.Secret != nil:
		setPtr(&v.Secret.DefaultMode, mode)
	case v.ConfigMap != nil:
		setPtr(&v.ConfigMap.DefaultMode, mode)
	case v.DownwardAPI != nil:
		setPtr(&v.DownwardAPI.DefaultMode, mode)
	case v.Projected != nil:
		setPtr(&v.Projected.DefaultMode, mode)
		for _, source := range v.Projected.Sources {
			if source.ServiceAccountToken != nil {
				setPtr(&source.ServiceAccountToken.ExpirationSeconds, int64(3600))
			}
		}
	case v.HostPath != nil:
		setPtr(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
}

func defaultTemplate(template *corev1.PodTemplateSpec) {
	template.Spec.DeprecatedServiceAccount = template.Spec.ServiceAccountName
	defaultPodSpec(&template.Spec)
}

func defaultPodTemplate(obj runtime.Object) { defaultTemplate(&obj.(*corev1.PodTemplate).Template) }

func defaultReplicationController(obj runtime.Object) {
	rc := obj.(*corev1.ReplicationController)
	setPtr(&rc.Spec.Replicas, 1)
	if rc.Spec.Template != nil {
		defaultTemplate(rc.Spec.Template)
	}
}

func defaultDeployment(obj runtime.Object) {
	d := obj.(*appsv1.Deployment)
	setPtr(&d.Spec.Replicas, 1)
	set(&d.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		if d.Spec.Strategy.RollingUpdate == nil {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{}
		}
		setPtr(&d.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setPtr(&d.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	setPtr(&d.Spec.RevisionHistoryLimit, 10)
	setPtr(&d.Spec.ProgressDeadlineSeconds, 600)
	defaultTemplate(&d.Spec.Template)
}

func defaultReplicaSet(obj runtime.Object) {
	rs := obj.(*appsv1.ReplicaSet)
	setPtr(&rs.Spec.Replicas, 1)
	defaultTemplate(&rs.Spec.Template)
}

func defaultStatefulSet(obj runtime.Object) {
	s := obj.(*appsv1.StatefulSet)
	set(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	set(&s.Spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		if s.Spec.UpdateStrategy.RollingUpdate == nil {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{}
		}
		setPtr(&s.Spec.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	if s.Spec.PersistentVolumeClaimRetentionPolicy == nil {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{}
	}
	set(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	set(&s.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setPtr(&s.Spec.Replicas, 1)
	setPtr(&s.Spec.RevisionHistoryLimit, 10)
	defaultTemplate(&s.Spec.Template)
}

func defaultDaemonSet(obj runtime.Object) {
	ds := obj.(*appsv1.DaemonSet)
	set(&ds.Spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		if ds.Spec.UpdateStrategy.RollingUpdate == nil {
			ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{}
		}
		setPtr(&ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setPtr(&ds.Spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setPtr(&ds.Spec.RevisionHistoryLimit, 10)
	defaultTemplate(&ds.Spec.Template)
}

func defaultJobSpec(spec *batchv1.JobSpec) {
	if spec.Completions == nil && spec.Parallelism == nil {
		spec.Completions, spec.Parallelism = new(int32(1)), new(int32(1))
	}
	setPtr(&spec.Parallelism, 1)
	setPtr(&spec.BackoffLimit, 6)
	setPtr(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	setPtr(&spec.Suspend, false)
	setPtr(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	setPtr(&spec.ManualSelector, false)
	defaultTemplate(&spec.Template)
}

func defaultJob(obj runtime.Object) {
	job := obj.(*batchv1.Job)
	defaultJobSpec(&job.Spec)
}

// prepareJob generates the selector, as the strategy of Jobs does. The caller has set the UID before.
func prepareJob(obj Object) {
	uid, _ := meta(obj)["uid"].(string)
	name, _ := meta(obj)["name"].(string)
	spec, _ := obj["spec"].(map[string]any)
	if spec == nil || spec["manualSelector"] == true {
		return
	}
	template, _ := spec["template"].(map[string]any)
	if template == nil {
		return
	}
	labels, _ := meta(template)["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
	}
	labels["controller-uid"], labels["job-name"] = uid, name
	labels["batch.kubernetes.io/controller-uid"], labels["batch.kubernetes.io/job-name"] = uid, name
	meta(template)["labels"] = labels
	spec["selector"] = map[string]any{"matchLabels": map[string]any{"batch.kubernetes.io/controller-uid": uid}}
}

func defaultCronJob(obj runtime.Object) {
	job := obj.(*batchv1.CronJob)
	set(&job.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setPtr(&job.Spec.Suspend, false)
	setPtr(&job.Spec.SuccessfulJobsHistoryLimit, 3)
	setPtr(&job.Spec.FailedJobsHistoryLimit, 1)
	defaultTemplate(&job.Spec.JobTemplate.Spec.Template)
}

func defaultBinding(obj runtime.Object) {
	subjects := func(list []rbacv1.Subject) {
		for i := range list {
			if list[i].Kind == rbacv1.UserKind || list[i].Kind == rbacv1.GroupKind {
				set(&list[i].APIGroup, rbacv1.GroupName)
			}
		}
	}
	switch b := obj.(type) {
	case *rbacv1.RoleBinding:
		set(&b.RoleRef.APIGroup, rbacv1.GroupName)
		subjects(b.Subjects)
	case *rbacv1.ClusterRoleBinding:
		set(&b.RoleRef.APIGroup, rbacv1.GroupName)
		subjects(b.Subjects)
	}
}

func defaultCSR(obj runtime.Object) {
	csr := obj.(*certificatesv1.CertificateSigningRequest)
	if csr.Spec.Usages == nil {
		csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}
	}
}

func defaultNetworkPolicy(obj runtime.Object) {
	policy := obj.(*networkingv1.NetworkPolicy)
	if len(policy.Spec.PolicyTypes) == 0 {
		policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(policy.Spec.Egress) > 0 {
			policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	for _, rule := range policy.Spec.Ingress {
		for i := range rule.Ports {
			setPtr(&rule.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
	for _, rule := range policy.Spec.Egress {
		for i := range rule.Ports {
			setPtr(&rule.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	}
}

func defaultCRD(obj runtime.Object) {
	apiextensionsv1.SetDefaults_CustomResourceDefinition(obj.(*apiextensionsv1.CustomResourceDefinition))
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&obj.(*apiextensionsv1.CustomResourceDefinition).Spec)
}

// prepareCRD sets the stored versions and the finalizer that deletes the instances.
func prepareCRD(obj Object) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := FromObject(obj, &crd); err != nil {
		return
	}
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
		}
	}
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&crd)
	if err != nil {
		return
	}
	for _, key := range []string{"status", "metadata"} {
		obj[key] = content[key]
	}
}
