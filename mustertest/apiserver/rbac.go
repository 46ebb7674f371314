package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

var (
	namespaces                = coreResource("namespaces")
	serviceAccounts           = coreResource("serviceaccounts")
	resourceQuotas            = coreResource("resourcequotas")
	configMaps                = coreResource("configmaps")
	pods                      = coreResource("pods")
	signingRequests           = schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}
	customResourceDefinitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	roles                     = schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}
	clusterRoles              = schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}
	roleBindings              = schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}
	clusterRoleBindings       = schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}
)

func coreResource(name string) schema.GroupResource { return schema.GroupResource{Resource: name} }

// attributes are the attributes of a request for the authorization by RBAC.
type attributes struct {
	user                                            user
	verb                                            string
	resource                                        bool // otherwise a path
	group, kind, subresource, namespace, name, path string
}

func (r *request) attributes(verb string) attributes {
	return attributes{
		user: r.user, verb: verb, resource: r.forResource(), group: r.gvr.Group, kind: r.gvr.Resource,
		subresource: r.subresource, namespace: r.namespace, name: r.name, path: r.http.URL.Path,
	}
}

func (a attributes) fullResource() string {
	if a.subresource == "" {
		return a.kind
	}
	return a.kind + "/" + a.subresource
}

// reader is a Store or a transaction of it.
type reader interface {
	Get(store.Key) *store.Item
	List(schema.GroupResource, string) []*store.Item
}

type storeReader struct{ *store.Store }

func (s storeReader) List(resource schema.GroupResource, namespace string) []*store.Item {
	items, _ := s.Store.List(resource, namespace)
	return items
}

func (s *Server) reader() reader { return storeReader{s.store} }

func (s *Server) authorizeRequest(r *request) error {
	a := r.attributes(r.verb)
	if ok, reason := s.authorized(s.reader(), a); !ok {
		return forbidden(a, reason)
	}
	return nil
}

// authorizeVerb returns an error unless the user may use another verb on the object of the request.
func (s *Server) authorizeVerb(tx reader, r *request, verb string) error {
	a := r.attributes(verb)
	if ok, reason := s.authorized(tx, a); !ok {
		return forbidden(a, reason)
	}
	return nil
}

func forbidden(a attributes, reason string) error {
	var message string
	switch {
	case !a.resource:
		message = fmt.Sprintf("User %q cannot %s path %q", a.user.Name, a.verb, a.path)
	case a.namespace != "":
		message = fmt.Sprintf("User %q cannot %s resource %q in API group %q in the namespace %q", a.user.Name, a.verb,
			a.fullResource(), a.group, a.namespace)
	default:
		message = fmt.Sprintf("User %q cannot %s resource %q in API group %q at the cluster scope", a.user.Name, a.verb,
			a.fullResource(), a.group)
	}
	if reason != "" {
		message += ": " + reason
	}
	if !a.resource {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Details: &metav1.StatusDetails{}, Message: "forbidden: " + message,
		}}
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.group, Resource: a.kind}, a.name, errors.New(message))
}

// authorized evaluates the Roles and bindings in tx. Reason contains the names of missing roles.
func (s *Server) authorized(tx reader, a attributes) (ok bool, reason string) {
	if slices.Contains(a.user.Groups, groupMasters) {
		return true, ""
	}
	var missing []string
	s.visitRules(tx, a.user, a.namespace, func(rule *rbacv1.PolicyRule, problem error) bool {
		if problem != nil {
			if text := problem.Error(); !slices.Contains(missing, text) {
				missing = append(missing, text)
			}
			return true
		}
		ok = ruleAllows(a, rule)
		return !ok
	})
	if ok || len(missing) == 0 {
		return ok, ""
	}
	if len(missing) == 1 {
		return false, "RBAC: " + missing[0]
	}
	return false, "RBAC: [" + strings.Join(missing, ", ") + "]"
}

// visitRules calls visit with each rule that the user has in a namespace, and with an error for each missing role,
// until visit returns false.
func (s *Server) visitRules(tx reader, u user, namespace string, visit func(*rbacv1.PolicyRule, error) bool) {
	inspect := func(item *store.Item, namespaced string) bool {
		binding := bindingOf(item)
		if !slices.ContainsFunc(binding.subjects, func(subject rbacv1.Subject) bool { return u.is(subject, namespaced) }) {
			return true
		}
		rules, err := roleRules(tx, binding.ref, namespaced)
		if err != nil {
			return visit(nil, err)
		}
		for i := range rules {
			if !visit(&rules[i], nil) {
				return false
			}
		}
		return true
	}
	for _, item := range tx.List(clusterRoleBindings, "") {
		if !inspect(item, "") {
			return
		}
	}
	if namespace == "" {
		return
	}
	for _, item := range tx.List(roleBindings, namespace) {
		if !inspect(item, namespace) {
			return
		}
	}
}

type binding struct {
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

func bindingOf(item *store.Item) binding {
	found, _ := item.Memo(func(obj map[string]any) any {
		var typed rbacv1.ClusterRoleBinding // has the fields of a RoleBinding
		_ = kinds.FromObject(obj, &typed)   // the object was validated when it was stored
		return binding{typed.RoleRef, typed.Subjects}
	}).(binding)
	return found
}

func rulesOf(item *store.Item) []rbacv1.PolicyRule {
	found, _ := item.Memo(func(obj map[string]any) any {
		var typed rbacv1.ClusterRole
		_ = kinds.FromObject(obj, &typed) // the object was validated when it was stored
		return typed.Rules
	}).([]rbacv1.PolicyRule)
	return found
}

func roleRules(tx reader, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	key := store.Key{Resource: clusterRoles, Name: ref.Name}
	if ref.Kind == "Role" {
		key = store.Key{Resource: roles, Namespace: namespace, Name: ref.Name}
	}
	item := tx.Get(key)
	if item == nil {
		return nil, fmt.Errorf("%s.%s %q not found", strings.ToLower(ref.Kind), rbacv1.GroupName, ref.Name)
	}
	return rulesOf(item), nil
}

func (u user) is(subject rbacv1.Subject, namespace string) bool {
	switch subject.Kind {
	case rbacv1.UserKind:
		return subject.Name == u.Name
	case rbacv1.GroupKind:
		return slices.Contains(u.Groups, subject.Name)
	case rbacv1.ServiceAccountKind:
		if subject.Namespace != "" {
			namespace = subject.Namespace
		}
		return namespace != "" && u.Name == serviceAccountPrefix+namespace+":"+subject.Name
	}
	return false
}

func ruleAllows(a attributes, rule *rbacv1.PolicyRule) bool {
	if !has(rule.Verbs, a.verb) {
		return false
	}
	if !a.resource {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return pathMatches(pattern, a.path) })
	}
	return has(rule.APIGroups, a.group) && resourceMatches(rule.Resources, a.fullResource(), a.subresource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.name))
}

func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

func resourceMatches(list []string, full, subresource string) bool {
	return slices.ContainsFunc(list, func(one string) bool {
		return one == "*" || one == full || subresource != "" && one == "*/"+subresource
	})
}

func pathMatches(pattern, path string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == "*" || pattern == path || wild && strings.HasPrefix(path, strings.TrimRight(prefix, "*"))
}
