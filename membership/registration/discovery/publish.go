package discovery

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
)

// readerName is the name that kubeadm uses, so that a hub of kubeadm already has these objects.
const readerName = "kubeadm:bootstrap-signer-clusterinfo"

const anonymous = "system:anonymous"

// Publish makes a hub discoverable by [Discover]: it creates the ConfigMap kube-public/cluster-info, with the URL of
// the hub's API server and its CA as a PEM-encoded bundle, and allows every client to read that object. Calling it
// again changes nothing. Existing objects, as on every hub of kubeadm, are not changed; if their content differs, the
// error is [ErrPublished]. After an error Publish may be called again.
//
// It needs get and create on configmaps, roles and rolebindings in kube-public. The client's scheme must know core/v1
// and rbac/v1.
func Publish(ctx context.Context, c client.Client, server string, ca []byte) error {
	if _, err := certutil.ParseCertsPEM(ca); err != nil {
		return &membership.InvalidError{Field: "ca", Problem: "must be one or more PEM-encoded certificates"}
	}
	if err := checkServer("server", server); err != nil {
		return err
	}
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"": {Server: server, CertificateAuthorityData: ca}},
	})
	if err != nil {
		return fmt.Errorf("write the kubeconfig of cluster-info: %w", err)
	}
	info := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo},
		Data:       map[string]string{bootstrapapi.KubeConfigKey: string(kubeconfig)},
	}
	reader := metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: readerName}
	role := &rbacv1.Role{ObjectMeta: reader, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"},
		ResourceNames: []string{bootstrapapi.ConfigMapClusterInfo}, Verbs: []string{"get"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: reader,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: readerName},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: anonymous}},
	}
	if err := ensure(ctx, c, info,
		func(found *corev1.ConfigMap) bool { return publishes(found, server, ca) }); err != nil {
		return err
	}
	if err := ensure(ctx, c, role,
		func(found *rbacv1.Role) bool { return equality.Semantic.DeepEqual(found.Rules, role.Rules) }); err != nil {
		return err
	}
	return ensure(ctx, c, binding, func(found *rbacv1.RoleBinding) bool {
		return found.RoleRef == binding.RoleRef && slices.Contains(found.Subjects, binding.Subjects[0])
	})
}

// ensure creates an object, unless a sufficient one exists. The function does reports whether an existing object is
// sufficient.
func ensure[T client.Object](ctx context.Context, c client.Client, object T, does func(found T) bool) error {
	what := fmt.Sprintf("%s %s", reflect.TypeFor[T]().Elem().Name(), client.ObjectKeyFromObject(object))
	found := object.DeepCopyObject().(T)
	err := c.Get(ctx, client.ObjectKeyFromObject(object), found)
	if apierrors.IsNotFound(err) {
		if err = c.Create(ctx, object); !apierrors.IsAlreadyExists(err) {
			return wrap("create "+what, err)
		}
		err = c.Get(ctx, client.ObjectKeyFromObject(object), found) // Another client created it first.
	}
	if err != nil {
		return wrap("get "+what, err)
	}
	if !does(found) {
		return fmt.Errorf("publish %s: %w: the object is not overwritten; delete it first if it is not needed", what,
			ErrPublished)
	}
	return nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// publishes reports whether a ConfigMap has the same meaning, even if its text differs.
func publishes(info *corev1.ConfigMap, server string, ca []byte) bool {
	cluster, err := clusterOf(info.Data[bootstrapapi.KubeConfigKey])
	if err != nil || cluster.Server != server {
		return false
	}
	want, err := CACertHashes(ca)
	if err != nil {
		return false
	}
	got, err := CACertHashes(cluster.CertificateAuthorityData)
	return err == nil && slices.Equal(got, want)
}
