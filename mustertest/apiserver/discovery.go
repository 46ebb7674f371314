package apiserver

import (
	"cmp"
	"encoding/json"
	"net/http"
	"runtime"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
)

// Version is the version of Kubernetes that the server reports. It is the version of the libraries with which the
// server is built.
const Version = "v1.37.0"

// servePath responds to requests for paths that are not resources.
func (s *Server) servePath(w http.ResponseWriter, r *request) {
	path := strings.TrimRight(r.http.URL.Path, "/")
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	accept, err := negotiate(r.http.Header.Get("Accept"), false)
	if err != nil {
		accept = accepted{media: kinds.JSON}
	}
	r.response.accept = accept
	switch {
	case slices.Contains([]string{"/healthz", "/livez", "/readyz"}, path):
		reply(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok"))
	case path == "/version":
		r.document(w, serverVersion())
	case path == "/api" && accept.aggregated:
		r.aggregated(w, s.aggregated(true))
	case path == "/apis" && accept.aggregated:
		r.aggregated(w, s.aggregated(false))
	case path == "/api":
		r.document(w, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: s.host() +
				":443"}},
		})
	case path == "/apis":
		r.document(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups: s.groups()})
	case parts[0] == "apis" && len(parts) == 2:
		for _, group := range s.groups() {
			if group.Name == parts[1] {
				group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				r.document(w, group)
				return
			}
		}
		unknownResource(w)
	case parts[0] == "api" && len(parts) == 2 || parts[0] == "apis" && len(parts) == 3:
		gv := schema.GroupVersion{Version: parts[len(parts)-1]}
		if len(parts) == 3 {
			gv.Group = parts[1]
		}
		resources := s.resources(gv)
		if len(resources) == 0 {
			unknownResource(w)
			return
		}
		r.document(w, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
			APIResources: resources,
		})
	case parts[0] == "openapi":
		r.fail(w, notImplemented("path "+path))
	default:
		unknownResource(w)
	}
}

func serverVersion() version.Info {
	parsed := utilversion.MustParseSemantic(Version)
	return version.Info{
		Major: "1", Minor: cmp.Or(strings.Split(parsed.String(), ".")[1], "0"), GitVersion: Version,
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func (r *request) document(w http.ResponseWriter, value any) {
	r.header(w)
	media := kinds.JSON
	if r.response.accept.media == kinds.YAML {
		media = kinds.YAML
	}
	body, err := marshal(media, value)
	if err != nil {
		r.fail(w, err)
		return
	}
	reply(w, http.StatusOK, media, body)
}

func (r *request) aggregated(w http.ResponseWriter, list apidiscoveryv2.APIGroupDiscoveryList) {
	body, err := json.Marshal(list)
	if err != nil {
		r.fail(w, err)
		return
	}
	reply(w, http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", body)
}

// groups returns all groups except the core group, in the order in which they were installed.
func (s *Server) groups() []metav1.APIGroup {
	var out []metav1.APIGroup
	for _, kind := range s.served.inOrder() {
		gv := kind.Resource.GroupVersion()
		if gv.Group == "" {
			continue
		}
		at := slices.IndexFunc(out, func(g metav1.APIGroup) bool { return g.Name == gv.Group })
		if at < 0 {
			out = append(out, metav1.APIGroup{Name: gv.Group})
			at = len(out) - 1
		}
		one := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if !slices.Contains(out[at].Versions, one) {
			out[at].Versions = append(out[at].Versions, one)
		}
	}
	for i := range out {
		sortVersions(out[i].Versions)
		out[i].PreferredVersion = out[i].Versions[0]
	}
	return out
}

func sortVersions(versions []metav1.GroupVersionForDiscovery) {
	slices.SortFunc(versions, func(a, b metav1.GroupVersionForDiscovery) int {
		return -compareKubeVersions(a.Version, b.Version)
	})
}

func (s *Server) resources(gv schema.GroupVersion) []metav1.APIResource {
	var out []metav1.APIResource
	for _, kind := range s.served.inOrder() {
		if kind.Resource.GroupVersion() != gv {
			continue
		}
		out = append(out, metav1.APIResource{
			Name: kind.Resource.Resource, SingularName: kind.Names.Singular, Namespaced: kind.Namespaced, Kind: kind.GVK.Kind,
			Verbs: s.verbs(kind), ShortNames: kind.Names.ShortNames, Categories: kind.Names.Categories,
		})
		for _, sub := range subresources(kind) {
			resource := metav1.APIResource{
				Name: kind.Resource.Resource + "/" + sub.name, Namespaced: kind.Namespaced, Kind: sub.kind.Kind, Verbs: sub.verbs,
			}
			if sub.kind.GroupVersion() != gv {
				resource.Group, resource.Version = sub.kind.Group, sub.kind.Version
			}
			out = append(out, resource)
		}
	}
	slices.SortStableFunc(out, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

type subresource struct {
	name  string
	kind  schema.GroupVersionKind
	verbs []string
}

func subresources(kind *kinds.Kind) []subresource {
	var out []subresource
	if kind.Storage == signingRequests {
		out = append(out, subresource{"approval", kind.GVK, []string{"get", "patch", "update"}})
	}
	if kind.Storage == namespaces {
		out = append(out, subresource{"finalize", kind.GVK, []string{"update"}})
	}
	if kind.Subresources.Status {
		out = append(out, subresource{"status", kind.GVK, []string{"get", "patch", "update"}})
	}
	if kind.Storage == serviceAccounts {
		out = append(out, subresource{"token", kinds.TokenRequest().GVK, []string{"create"}})
	}
	return out
}

// verbs returns the verbs of a kind in discovery. A terminating custom resource has fewer verbs.
func (s *Server) verbs(kind *kinds.Kind) []string {
	if kind.Builtin() {
		return kind.Verbs
	}
	verbs := []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	if s.terminating(kind.Storage) {
		verbs = []string{"delete", "deletecollection", "get", "list", "watch"}
	}
	return verbs
}

func (s *Server) aggregated(core bool) apidiscoveryv2.APIGroupDiscoveryList {
	out := apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	groups := s.groups()
	if core {
		groups = []metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}}}
	}
	for _, group := range groups {
		entry := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group.Name}}
		for _, version := range group.Versions {
			entry.Versions = append(entry.Versions, apidiscoveryv2.APIVersionDiscovery{
				Version: version.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
				Resources: s.discover(schema.GroupVersion{Group: group.Name, Version: version.Version}),
			})
		}
		out.Items = append(out.Items, entry)
	}
	return out
}

func (s *Server) discover(gv schema.GroupVersion) []apidiscoveryv2.APIResourceDiscovery {
	var out []apidiscoveryv2.APIResourceDiscovery
	kindOf := func(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
		return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	}
	for _, kind := range s.served.inOrder() {
		if kind.Resource.GroupVersion() != gv {
			continue
		}
		scope := apidiscoveryv2.ScopeCluster
		if kind.Namespaced {
			scope = apidiscoveryv2.ScopeNamespace
		}
		entry := apidiscoveryv2.APIResourceDiscovery{
			Resource: kind.Resource.Resource, ResponseKind: kindOf(kind.GVK), Scope: scope, Verbs: s.verbs(kind),
			SingularResource: kind.Names.Singular, ShortNames: kind.Names.ShortNames, Categories: kind.Names.Categories,
		}
		for _, sub := range subresources(kind) {
			entry.Subresources = append(entry.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: sub.name, ResponseKind: kindOf(sub.kind), Verbs: sub.verbs,
			})
		}
		out = append(out, entry)
	}
	slices.SortFunc(out, func(a, b apidiscoveryv2.APIResourceDiscovery) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}
