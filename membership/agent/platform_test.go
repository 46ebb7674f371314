package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestLocations(t *testing.T) {
	located := func(providerID string, labels ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
		n.Spec.ProviderID = providerID
		for i := 0; i < len(labels); i += 2 {
			n.Labels[labels[i]] = labels[i+1]
		}
		return n
	}
	const region, zone = corev1.LabelTopologyRegion, corev1.LabelTopologyZone
	for _, tc := range []struct {
		reason string
		nodes  []*corev1.Node
		want   []v1alpha1.Property
	}{
		{"no nodes", nil, nil},
		{"nodes without a provider ID", []*corev1.Node{located("")}, nil},
		{"zones are sorted and without duplicates", []*corev1.Node{
			located("aws:///eu-1b/i-1", region, "eu-1", zone, "eu-1b"),
			located("aws:///eu-1a/i-2", region, "eu-1", zone, "eu-1a"),
			located("aws:///eu-1b/i-3", region, "eu-1", zone, "eu-1b"), located(""),
		}, []v1alpha1.Property{{Name: PropertyPlatform, Value: "aws"}, {Name: PropertyRegion, Value: "eu-1"},
			{Name: PropertyZone, Value: "eu-1a,eu-1b"}}},
		{"topology labels of Kubernetes before 1.17", []*corev1.Node{
			located("", corev1.LabelFailureDomainBetaRegion, "eu", corev1.LabelFailureDomainBetaZone, "z"),
		}, []v1alpha1.Property{{Name: PropertyRegion, Value: "eu"}, {Name: PropertyZone, Value: "z"}}},
		{"the product of a label", []*corev1.Node{located("azure:///x", "kubernetes.azure.com/cluster", "MC_a")},
			[]v1alpha1.Property{{Name: PropertyPlatform, Value: "azure"}, {Name: PropertyProduct, Value: "AKS"}}},
		{"OpenShift on AWS", []*corev1.Node{located("aws:///x", "node.openshift.io/os_id", "rhcos")},
			[]v1alpha1.Property{{Name: PropertyPlatform, Value: "aws"}, {Name: PropertyProduct, Value: "OpenShift"}}},
		{"kind is known from its provider ID", []*corev1.Node{located("kind://docker/a/a-control-plane")},
			[]v1alpha1.Property{{Name: PropertyPlatform, Value: "kind"}, {Name: PropertyProduct, Value: "kind"}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			l := newLocations()
			for _, n := range tc.nodes {
				l.addNode(n)
			}
			if diff := cmp.Diff(tc.want, l.properties()); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestProductOfVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.36.3": "", "": "",
		"v1.36.3-eks-a1b2c3d":     "EKS",
		"v1.36.3-gke.1234000":     "GKE",
		"v1.36.3-aliyun.1":        "ACK",
		"v1.36.3+IKS":             "IKS",
		"v1.36.3+k3s1":            "K3s",
		"v1.36.3+k0s.0":           "k0s",
		"v1.36.3+rke2r1":          "RKE2",
		"v1.36.3-alpha.1.eks-old": "",
	} {
		if got := productOfVersion(version); got != want {
			t.Errorf("%s: want %q, got %q", version, want, got)
		}
	}
}
