package apiserver

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// checkEscalation rejects roles and bindings that would grant permissions that the user does not have, unless the user
// has the verb escalate or bind. Old is nil for a new object.
func (s *Server) checkEscalation(tx *store.Tx, r *request, obj, old kinds.Object) error {
	if slices.Contains(r.user.Groups, groupMasters) {
		return nil
	}
	switch r.kind.Storage {
	case roles, clusterRoles:
		return s.checkRole(tx, r, obj, old)
	case roleBindings, clusterRoleBindings:
		return s.checkBinding(tx, r, obj, old)
	}
	return nil
}

func (s *Server) checkRole(tx *store.Tx, r *request, obj, old kinds.Object) error {
	var role, before rbacv1.ClusterRole
	if err := kinds.FromObject(obj, &role); err != nil {
		return err
	}
	if old != nil {
		if err := kinds.FromObject(old, &before); err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(role.Rules, before.Rules) &&
			equality.Semantic.DeepEqual(role.AggregationRule, before.AggregationRule) {
			return nil
		}
	}
	a := r.attributes("escalate")
	a.name = role.Name
	if ok, _ := s.authorized(tx, a); ok {
		return nil
	}
	rules := role.Rules
	if role.AggregationRule != nil {
		rules = append(slices.Clone(rules), rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"},
			Verbs: []string{"*"}},
			rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}})
	}
	return s.confirmGranted(tx, r, role.Name, rules)
}

func (s *Server) checkBinding(tx *store.Tx, r *request, obj, old kinds.Object) error {
	var b, before rbacv1.ClusterRoleBinding
	if err := kinds.FromObject(obj, &b); err != nil {
		return err
	}
	if old != nil {
		if err := kinds.FromObject(old, &before); err != nil {
			return err
		}
		if b.RoleRef == before.RoleRef && fmt.Sprint(b.Subjects) == fmt.Sprint(before.Subjects) {
			return nil
		}
	}
	kind := "clusterroles"
	if b.RoleRef.Kind == "Role" {
		kind = "roles"
	}
	a := attributes{user: r.user, verb: "bind", resource: true, group: rbacv1.GroupName, kind: kind,
		namespace: r.namespace, name: b.RoleRef.Name}
	if ok, _ := s.authorized(tx, a); ok {
		return nil
	}
	rules, err := roleRules(tx, b.RoleRef, r.namespace)
	if err != nil {
		resource := roles
		if kind == "clusterroles" {
			resource = clusterRoles
		}
		return apierrors.NewNotFound(resource, b.RoleRef.Name)
	}
	return s.confirmGranted(tx, r, b.Name, rules)
}

// confirmGranted returns an error that contains the rules which the user of the request does not have.
func (s *Server) confirmGranted(tx *store.Tx, r *request, name string, rules []rbacv1.PolicyRule) error {
	var granted []rbacv1.PolicyRule
	s.visitRules(tx, r.user, r.namespace, func(rule *rbacv1.PolicyRule, err error) bool {
		if err == nil {
			granted = append(granted, *rule)
		}
		return true
	})
	missing := uncovered(granted, rules)
	if len(missing) == 0 {
		return nil
	}
	groups := make([]string, 0, len(r.user.Groups))
	for _, group := range r.user.Groups {
		groups = append(groups, fmt.Sprintf("%q", group))
	}
	texts := make([]string, 0, len(missing))
	for _, rule := range compacted(missing) {
		texts = append(texts, ruleText(rule))
	}
	slices.Sort(texts)
	return apierrors.NewForbidden(r.groupResource(), name, fmt.Errorf(
		"user %q (groups=[%s]) is attempting to grant RBAC permissions not currently held:\n%s",
		r.user.Name, strings.Join(groups, " "), strings.Join(texts, "\n")))
}

// uncovered returns the parts of wanted that no rule of granted contains. Each part has one verb, group and resource.
func uncovered(granted, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range wanted {
		for _, part := range breakdown(rule) {
			if !slices.ContainsFunc(granted, func(h rbacv1.PolicyRule) bool { return ruleCovers(h, part) }) {
				out = append(out, part)
			}
		}
	}
	return out
}

func breakdown(rule rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				part := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
				if len(rule.ResourceNames) == 0 {
					out = append(out, part)
				}
				for _, name := range rule.ResourceNames {
					part.ResourceNames = []string{name}
					out = append(out, part)
				}
			}
		}
	}
	for _, url := range rule.NonResourceURLs {
		for _, verb := range rule.Verbs {
			out = append(out, rbacv1.PolicyRule{NonResourceURLs: []string{url}, Verbs: []string{verb}})
		}
	}
	return out
}

func ruleCovers(granted, part rbacv1.PolicyRule) bool {
	if !has(granted.Verbs, part.Verbs[0]) {
		return false
	}
	if len(part.NonResourceURLs) > 0 {
		return slices.ContainsFunc(granted.NonResourceURLs, func(pattern string) bool {
			return pathMatches(pattern, part.NonResourceURLs[0])
		})
	}
	_, subresource, _ := strings.Cut(part.Resources[0], "/")
	if !has(granted.APIGroups, part.APIGroups[0]) || !resourceMatches(granted.Resources, part.Resources[0], subresource) {
		return false
	}
	return len(granted.ResourceNames) == 0 || len(part.ResourceNames) > 0 && slices.Contains(granted.ResourceNames,
		part.ResourceNames[0])
}

// compacted merges rules that differ only in their verbs.
func compacted(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		at := slices.IndexFunc(out, func(o rbacv1.PolicyRule) bool {
			return slices.Equal(o.APIGroups, rule.APIGroups) && slices.Equal(o.Resources, rule.Resources) &&
				slices.Equal(o.ResourceNames, rule.ResourceNames) && len(o.NonResourceURLs)+len(rule.NonResourceURLs) == 0
		})
		if at < 0 {
			rule.Verbs = slices.Clone(rule.Verbs)
			out = append(out, rule)
			continue
		}
		if !slices.Contains(out[at].Verbs, rule.Verbs[0]) {
			out[at].Verbs = append(out[at].Verbs, rule.Verbs[0])
		}
	}
	return out
}

func ruleText(rule rbacv1.PolicyRule) string {
	var parts []string
	add := func(name string, values []string) {
		if len(values) > 0 {
			quoted := make([]string, 0, len(values))
			for _, value := range values {
				quoted = append(quoted, fmt.Sprintf("%q", value))
			}
			parts = append(parts, fmt.Sprintf("%s:[%s]", name, strings.Join(quoted, " ")))
		}
	}
	add("APIGroups", rule.APIGroups)
	add("Resources", rule.Resources)
	add("NonResourceURLs", rule.NonResourceURLs)
	add("ResourceNames", rule.ResourceNames)
	add("Verbs", rule.Verbs)
	return "{" + strings.Join(parts, ", ") + "}"
}
