package agent

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// The values of the property product.
const (
	productACK       = "ACK"
	productAKS       = "AKS"
	productEKS       = "EKS"
	productGKE       = "GKE"
	productIKS       = "IKS"
	productK0s       = "k0s"
	productK3s       = "K3s"
	productKind      = "kind"
	productMicroK8s  = "MicroK8s"
	productOpenShift = "OpenShift"
	productRKE2      = "RKE2"
)

// versionMarks are the parts of the git version that identify the builds of distributions.
var versionMarks = []struct{ mark, product string }{
	{"-eks-", productEKS},
	{"-gke.", productGKE},
	{"-aliyun", productACK},
	{"+IKS", productIKS},
	{"+k0s", productK0s},
	{"+k3s", productK3s},
	{"+rke2", productRKE2},
}

// productOfVersion returns the product in a git version such as v1.36.3-eks-a1b2c3d, or "".
func productOfVersion(gitVersion string) string {
	for _, m := range versionMarks {
		if strings.Contains(gitVersion, m.mark) {
			return m.product
		}
	}
	return ""
}

// labelMarks are the labels that only the nodes of one product have.
var labelMarks = []struct{ label, product string }{
	{"node.openshift.io/os_id", productOpenShift},
	{"kubernetes.azure.com/cluster", productAKS},
	{"eks.amazonaws.com/nodegroup", productEKS},
	{"cloud.google.com/gke-nodepool", productGKE},
	{"microk8s.io/cluster", productMicroK8s},
}

// productOfNode returns the product according to the labels or the provider ID of a node, or "".
func productOfNode(node *corev1.Node, platform string) string {
	for _, m := range labelMarks {
		if _, marked := node.Labels[m.label]; marked {
			return m.product
		}
	}
	if platform == "kind" {
		return productKind
	}
	return ""
}

// locations contains the values of the platform properties of all nodes of a member.
type locations struct{ platforms, products, regions, zones map[string]bool }

func newLocations() locations {
	return locations{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

func (l locations) addNode(node *corev1.Node) {
	platform, _, _ := strings.Cut(node.Spec.ProviderID, "://")
	l.platforms[platform] = true
	l.products[productOfNode(node, platform)] = true
	l.regions[cmp.Or(node.Labels[corev1.LabelTopologyRegion], node.Labels[corev1.LabelFailureDomainBetaRegion])] = true
	l.zones[cmp.Or(node.Labels[corev1.LabelTopologyZone], node.Labels[corev1.LabelFailureDomainBetaZone])] = true
}

// properties returns a property for each value that at least one node has. Different values are joined by commas, in
// alphabetical order.
func (l locations) properties() []v1alpha1.Property {
	var all []v1alpha1.Property
	for _, each := range []struct {
		name   string
		values map[string]bool
	}{
		{PropertyPlatform, l.platforms}, {PropertyProduct, l.products},
		{PropertyRegion, l.regions}, {PropertyZone, l.zones},
	} {
		delete(each.values, "")
		all = append(all, property(each.name, "%s", strings.Join(slices.Sorted(maps.Keys(each.values)), ","))...)
	}
	return all
}
