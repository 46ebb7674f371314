package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// review responds to a create request of a virtual kind, such as a SubjectAccessReview.
func (s *Server) review(w http.ResponseWriter, r *request) error {
	body, err := r.body()
	if err != nil {
		return err
	}
	if err := r.writeOptions(); err != nil {
		return err
	}
	obj, err := r.decode(r.kind, body)
	if err != nil {
		return err
	}
	typed, err := r.kind.Typed(obj)
	if err != nil {
		return err
	}
	switch review := typed.(type) {
	case *authenticationv1.TokenReview:
		s.reviewToken(review)
	case *authenticationv1.SelfSubjectReview:
		review.CreationTimestamp = metav1.NewTime(s.options.Clock.Now())
		review.Status.UserInfo = r.user.info()
	case *authorizationv1.SubjectAccessReview:
		spec := review.Spec
		u := user{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
		review.Status, err = s.access(u, spec.ResourceAttributes, spec.NonResourceAttributes)
	case *authorizationv1.LocalSubjectAccessReview:
		spec := review.Spec
		if spec.ResourceAttributes == nil || spec.ResourceAttributes.Namespace != r.namespace {
			return apierrors.NewBadRequest(fmt.Sprintf("spec.resourceAttributes.namespace must match namespace: %s",
				r.namespace))
		}
		review.Status, err = s.access(user{Name: spec.User, UID: spec.UID, Groups: spec.Groups}, spec.ResourceAttributes, nil)
	case *authorizationv1.SelfSubjectAccessReview:
		review.Status, err = s.access(r.user, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	case *authorizationv1.SelfSubjectRulesReview:
		if review.Spec.Namespace == "" {
			return apierrors.NewBadRequest("no namespace on request")
		}
		review.Status = s.rules(r.user, review.Spec.Namespace)
	default:
		return notImplemented(fmt.Sprintf("kind %s", r.kind.GVK.Kind))
	}
	if err != nil {
		return err
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return err
	}
	r.object(w, http.StatusCreated, r.kind, out)
	return nil
}

func (s *Server) reviewToken(review *authenticationv1.TokenReview) {
	audiences := review.Spec.Audiences
	if len(audiences) == 0 {
		audiences = []string{issuer}
	}
	review.Status = authenticationv1.TokenReviewStatus{}
	if u, ok := s.tokenUser(review.Spec.Token, audiences); ok {
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: u.info(), Audiences: audiences}
		return
	}
	review.Status.Error = "[invalid bearer token]"
}

func (s *Server) access(u user, resource *authorizationv1.ResourceAttributes,
	path *authorizationv1.NonResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	a := attributes{user: u}
	switch {
	case resource != nil && path == nil:
		a.resource, a.verb, a.group, a.kind, a.subresource = true, resource.Verb, resource.Group, resource.Resource,
			resource.Subresource
		a.namespace, a.name = resource.Namespace, resource.Name
	case path != nil && resource == nil:
		a.verb, a.path = path.Verb, path.Path
	default:
		return authorizationv1.SubjectAccessReviewStatus{}, apierrors.NewInvalid(
			authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview").GroupKind(), "", field.ErrorList{field.Invalid(
				field.NewPath("spec", "resourceAttributes"), nil,
				"exactly one of nonResourceAttributes or resourceAttributes must be specified")})
	}
	ok, reason := s.authorized(s.reader(), a)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: ok, Reason: reason}, nil
}

func (s *Server) rules(u user, namespace string) authorizationv1.SubjectRulesReviewStatus {
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	if slices.Contains(u.Groups, groupMasters) {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
		status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{
			Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
	}
	s.visitRules(s.reader(), u, namespace, func(rule *rbacv1.PolicyRule, err error) bool {
		switch {
		case err != nil:
			status.EvaluationError = err.Error()
		case len(rule.Resources) > 0:
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
		default:
			status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{
				Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
		}
		return true
	})
	return status
}

// createToken responds to a request for the subresource token of a ServiceAccount.
func (s *Server) createToken(w http.ResponseWriter, r *request) error {
	body, err := r.body()
	if err != nil {
		return err
	}
	tokenRequests := kinds.TokenRequest()
	obj, err := r.decode(tokenRequests, body)
	if err != nil {
		return err
	}
	item := s.store.Get(r.key())
	if item == nil {
		return apierrors.NewNotFound(serviceAccounts, r.name)
	}
	var ask authenticationv1.TokenRequest
	if err := kinds.FromObject(obj, &ask); err != nil {
		return err
	}
	const hour = int64(3600)
	seconds := hour
	if ask.Spec.ExpirationSeconds != nil {
		seconds = *ask.Spec.ExpirationSeconds
	}
	path := field.NewPath("spec", "expirationSeconds")
	invalid := func(message string) error {
		return apierrors.NewInvalid(tokenRequests.GVK.GroupKind(), "", field.ErrorList{field.Invalid(path, seconds, message)})
	}
	switch {
	case seconds < 600:
		return invalid("may not specify a duration less than 10 minutes")
	case seconds > 1<<32:
		return invalid("may not specify a duration larger than 2^32 seconds")
	}
	if len(ask.Spec.Audiences) == 0 {
		ask.Spec.Audiences = []string{issuer}
	}
	now := s.options.Clock.Now()
	c := claims{
		Audience: ask.Spec.Audiences, Expiry: now.Unix() + seconds, IssuedAt: now.Unix(), NotBefore: now.Unix(),
		Issuer: issuer,
		ID:     s.ids.uid(), Subject: serviceAccountPrefix + r.namespace + ":" + r.name,
		Kubernetes: privateClaims{Namespace: r.namespace, Account: objectRef{r.name, uidOf(item)}},
	}
	if err := s.bind(r, &c, ask.Spec.BoundObjectRef); err != nil {
		return err
	}
	token, err := s.tokens.write(c)
	if err != nil {
		return err
	}
	ask.Name, ask.Namespace, ask.CreationTimestamp = r.name, r.namespace, metav1.NewTime(now)
	ask.Spec.ExpirationSeconds = &seconds
	ask.Status = authenticationv1.TokenRequestStatus{
		Token: token, ExpirationTimestamp: metav1.NewTime(now.Add(time.Duration(seconds) * time.Second)),
	}
	ask.SetGroupVersionKind(tokenRequests.GVK)
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&ask)
	if err != nil {
		return err
	}
	r.object(w, http.StatusCreated, tokenRequests, out)
	return nil
}

// bind adds the bound object to the claims. The deletion of that object revokes the token.
func (s *Server) bind(r *request, c *claims, ref *authenticationv1.BoundObjectReference) error {
	if ref == nil {
		return nil
	}
	resource := map[string]string{"Pod": "pods", "Secret": "secrets"}[ref.Kind]
	if resource == "" || ref.APIVersion != "v1" && ref.APIVersion != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to object of kind %s", r.name,
			ref.Kind))
	}
	item := s.store.Get(store.Key{Resource: coreResource(resource), Namespace: r.namespace, Name: ref.Name})
	if item == nil {
		return apierrors.NewNotFound(coreResource(resource), ref.Name)
	}
	if ref.UID != "" && string(ref.UID) != uidOf(item) {
		return apierrors.NewConflict(coreResource(resource), ref.Name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted "+
				"and then recreated", ref.UID))
	}
	bound := &objectRef{ref.Name, uidOf(item)}
	if ref.Kind == "Pod" {
		c.Kubernetes.Pod = bound
	} else {
		c.Kubernetes.Secret = bound
	}
	return nil
}
