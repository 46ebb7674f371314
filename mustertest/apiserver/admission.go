package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// This server implements these admission plugins of kube-apiserver: NamespaceLifecycle, CertificateApproval,
// CertificateSubjectRestriction, ResourceQuota for object counts, and the parts of ServiceAccount and of the registries
// that set fields of new objects.

// admitCreate admits a new object before it is validated.
func (s *Server) admitCreate(tx *store.Tx, r *request, obj kinds.Object) error {
	if r.kind.Namespaced {
		if err := liveNamespace(tx, r, obj); err != nil {
			return err
		}
	}
	if r.kind.Builtin() {
		return s.fillNew(tx, r, obj)
	}
	crd := tx.Get(store.Key{Resource: customResourceDefinitions, Name: r.gvr.Resource + "." + r.gvr.Group})
	if crd != nil && deleted(crd) {
		return apierrors.NewForbidden(r.groupResource(), nameOf(obj),
			errors.New("create not allowed while custom resource definition is terminating"))
	}
	return nil
}

func liveNamespace(tx *store.Tx, r *request, obj kinds.Object) error {
	namespace := tx.Get(store.Key{Resource: namespaces, Name: r.namespace})
	if namespace == nil {
		return apierrors.NewNotFound(namespaces, r.namespace)
	}
	if !deleted(namespace) {
		return nil
	}
	name := nameOf(obj)
	err := apierrors.NewForbidden(r.groupResource(), name, fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", r.namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", r.namespace),
		Field: "metadata.namespace",
	})
	return err
}

// fillNew sets the fields that the registry of a built-in kind sets in new objects.
func (s *Server) fillNew(tx *store.Tx, r *request, obj kinds.Object) error {
	spec, _ := obj["spec"].(map[string]any)
	switch {
	case r.kind.Storage == signingRequests:
		return s.fillSigningRequest(r, obj)
	case r.kind.Storage == pods && spec != nil && spec["serviceAccountName"] == nil:
		spec["serviceAccountName"], spec["serviceAccount"] = "default", "default"
	case r.kind.Storage == coreResource("services") && spec != nil:
		s.allocateIP(tx, spec)
	}
	return nil
}

func (s *Server) fillSigningRequest(r *request, obj kinds.Object) error {
	var csr certificatesv1.CertificateSigningRequest
	if err := kinds.FromObject(obj, &csr); err != nil {
		return err
	}
	csr.Spec.Username, csr.Spec.UID, csr.Spec.Groups, csr.Spec.Extra = r.user.Name, r.user.UID, r.user.Groups, nil
	for key, values := range r.user.Extra {
		if csr.Spec.Extra == nil {
			csr.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		csr.Spec.Extra[key] = values
	}
	if csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName {
		parsed, err := kinds.ParseCSR(csr.Spec.Request)
		if err == nil && slices.Contains(parsed.Subject.Organization, groupMasters) {
			return apierrors.NewForbidden(r.groupResource(), csr.Name, fmt.Errorf(
				"use of %s signer with %s group is not allowed", csr.Spec.SignerName, groupMasters))
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&csr)
	if err != nil {
		return err
	}
	obj["spec"] = content["spec"]
	return nil
}

// allocateIP sets the cluster IP of a Service to the lowest free address.
func (s *Server) allocateIP(tx *store.Tx, spec map[string]any) {
	if ip, _ := spec["clusterIP"].(string); ip != "" || spec["type"] == "ExternalName" {
		if ip != "" && spec["clusterIPs"] == nil {
			spec["clusterIPs"] = []any{ip}
		}
		return
	}
	used := map[any]bool{}
	for _, item := range tx.List(coreResource("services"), "") {
		other, _ := item.Object["spec"].(map[string]any)
		used[other["clusterIP"]] = true
	}
	for i := 1; ; i++ {
		ip := fmt.Sprintf("10.96.%d.%d", i/256, i%256)
		if !used[ip] {
			spec["clusterIP"], spec["clusterIPs"] = ip, []any{ip}
			break
		}
	}
	if spec["ipFamilies"] == nil {
		spec["ipFamilies"] = []any{"IPv4"}
	}
	if spec["ipFamilyPolicy"] == nil {
		spec["ipFamilyPolicy"] = "SingleStack"
	}
}

// validateCreate checks privilege escalation and quotas for a new object. It is the last step before the object is
// stored, after the object was validated.
func (s *Server) validateCreate(tx *store.Tx, r *request, obj kinds.Object) error {
	if err := s.checkEscalation(tx, r, obj, nil); err != nil {
		return err
	}
	if r.kind.Namespaced && tx.Get(s.keyOf(r, nameOf(obj))) == nil {
		return s.countQuota(tx, r, nameOf(obj))
	}
	return nil
}

func (s *Server) validateUpdate(tx *store.Tx, r *request, obj, old kinds.Object) error {
	if r.kind.Storage == signingRequests && r.subresource == "approval" {
		return s.mayApprove(tx, r, obj, old)
	}
	return s.checkEscalation(tx, r, obj, old)
}

// protected is the error message of Kubernetes.
const protected = "this namespace may not be deleted"

// admitDelete rejects the deletion of the namespaces of the control plane.
func (s *Server) admitDelete(r *request, live kinds.Object) error {
	if r.kind.Storage == namespaces && slices.Contains([]string{"default", "kube-system", "kube-public"}, nameOf(live)) {
		return apierrors.NewForbidden(namespaces, nameOf(live), errors.New(protected))
	}
	return nil
}

// mayApprove returns an error unless the user may use the verb approve on the signer.
func (s *Server) mayApprove(tx *store.Tx, r *request, obj, old kinds.Object) error {
	spec, _ := old["spec"].(map[string]any)
	signer, _ := spec["signerName"].(string)
	if slices.Contains(r.user.Groups, groupMasters) {
		return nil
	}
	a := attributes{user: r.user, verb: "approve", resource: true, group: "certificates.k8s.io", kind: "signers",
		name: signer}
	if ok, _ := s.authorized(tx, a); ok {
		return nil
	}
	domain, _, _ := strings.Cut(signer, "/")
	a.name = domain + "/*"
	if ok, _ := s.authorized(tx, a); ok {
		return nil
	}
	return apierrors.NewForbidden(r.groupResource(), nameOf(obj), fmt.Errorf(
		"user not permitted to approve requests with signerName %q", signer))
}

// countNames returns the names under which a quota counts the resource of a request.
func countNames(r *request) []corev1.ResourceName {
	gr := r.kind.Storage
	names := []corev1.ResourceName{corev1.ResourceName("count/" + gr.String())}
	switch gr.String() {
	case "pods", "services", "secrets", "configmaps", "resourcequotas", "replicationcontrollers", "persistentvolumeclaims":
		names = append(names, corev1.ResourceName(gr.Resource))
	}
	return names
}

// countQuota adds a new object to the usage of the quotas of its namespace. It returns an error if a quota is exceeded.
func (s *Server) countQuota(tx *store.Tx, r *request, name string) error {
	counted := countNames(r)
	one := resource.MustParse("1")
	var put []func() // after all quotas were checked
	for _, item := range tx.List(resourceQuotas, r.namespace) {
		var quota corev1.ResourceQuota
		if err := kinds.FromObject(item.Object, &quota); err != nil {
			return err
		}
		changed := false
		for _, resourceName := range counted {
			hard, limited := quota.Status.Hard[resourceName]
			if !limited {
				continue
			}
			used := quota.Status.Used[resourceName]
			after := used.DeepCopy()
			after.Add(one)
			if after.Cmp(hard) > 0 {
				return apierrors.NewForbidden(r.groupResource(), name, fmt.Errorf(
					"exceeded quota: %s, requested: %s=1, used: %s=%s, limited: %s=%s",
					quota.Name, resourceName, resourceName, used.String(), resourceName, hard.String()))
			}
			if quota.Status.Used == nil {
				quota.Status.Used = corev1.ResourceList{}
			}
			quota.Status.Used[resourceName] = after
			changed = true
		}
		if !changed || r.dryRun {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&quota)
		if err != nil {
			return err
		}
		updated := runtime.DeepCopyJSON(item.Object)
		updated["status"] = content["status"]
		put = append(put, func() { tx.Put(item.Key, updated) })
	}
	for _, do := range put {
		do()
	}
	return nil
}
