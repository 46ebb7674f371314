package apiserver

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// user is the user that sends a request.
type user struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

const (
	groupMasters         = "system:masters"
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
	serviceAccountPrefix = "system:serviceaccount:"
	issuer               = "https://kubernetes.default.svc.cluster.local"
)

type userKey struct{}

// withUser returns a context with the user of requests that have no other credential.
func withUser(ctx context.Context, u user) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

func unauthorized() error { return apierrors.NewUnauthorized("Unauthorized") }

func (s *Server) authenticate(r *request) (user, error) {
	u, err := s.credential(r.http)
	if err != nil {
		return user{}, err
	}
	u.Groups = slices.Clone(u.Groups)
	switch {
	case u.Name == "":
		u = user{Name: "system:anonymous", Groups: []string{groupUnauthenticated}}
	case !slices.Contains(u.Groups, groupAuthenticated):
		u.Groups = append(u.Groups, groupAuthenticated)
	}
	return s.impersonate(r, u)
}

func (s *Server) credential(hr *http.Request) (user, error) {
	if header := hr.Header.Get("Authorization"); header != "" {
		token, ok := strings.CutPrefix(header, "Bearer ")
		if !ok {
			return user{}, unauthorized()
		}
		u, ok := s.tokenUser(token, []string{issuer})
		if !ok {
			return user{}, unauthorized()
		}
		return u, nil
	}
	if hr.TLS != nil && len(hr.TLS.PeerCertificates) > 0 {
		return s.certificateUser(hr.TLS.PeerCertificates[0])
	}
	u, _ := hr.Context().Value(userKey{}).(user)
	return u, nil
}

func (s *Server) certificateUser(certificate *x509.Certificate) (user, error) {
	if err := s.authority.verifyClient(certificate, s.options.Clock.Now()); err != nil {
		return user{}, unauthorized()
	}
	return user{
		Name: certificate.Subject.CommonName, Groups: certificate.Subject.Organization,
		Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {
			fmt.Sprintf("X509SHA256=%x", sha256.Sum256(certificate.Raw)),
		}},
	}, nil
}

// tokenUser returns the user of a token that is valid for one of the audiences.
func (s *Server) tokenUser(token string, audiences []string) (user, bool) {
	u, ok := s.tokens.user(token)
	if ok {
		return u, true
	}
	if u, ok := s.bootstrapUser(token); ok {
		return u, true
	}
	claims, ok := s.tokens.read(token)
	if !ok || !slices.ContainsFunc(claims.Audience, func(a string) bool { return slices.Contains(audiences, a) }) {
		return user{}, false
	}
	if now := s.options.Clock.Now().Unix(); now >= claims.Expiry || now < claims.NotBefore {
		return user{}, false
	}
	private := claims.Kubernetes
	account := s.store.Get(store.Key{Resource: serviceAccounts, Namespace: private.Namespace, Name: private.Account.Name})
	if account == nil || uidOf(account) != private.Account.UID || deleted(account) {
		return user{}, false
	}
	for resource, ref := range map[string]*objectRef{"secrets": private.Secret, "pods": private.Pod} {
		if ref == nil {
			continue
		}
		bound := s.store.Get(store.Key{Resource: coreResource(resource), Namespace: private.Namespace, Name: ref.Name})
		if bound == nil || uidOf(bound) != ref.UID {
			return user{}, false
		}
	}
	u = serviceAccountUser(private.Namespace, private.Account.Name, private.Account.UID)
	u.Extra = map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=" + claims.ID}}
	return u, true
}

func serviceAccountUser(namespace, name, uid string) user {
	return user{
		Name: serviceAccountPrefix + namespace + ":" + name, UID: uid,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, groupAuthenticated},
	}
}

// impersonate returns the user that the impersonation headers name, if u may impersonate that user. Without the headers
// it returns u.
func (s *Server) impersonate(r *request, u user) (user, error) {
	header := r.http.Header
	name := header.Get(authenticationv1.ImpersonateUserHeader)
	if name == "" {
		return u, nil
	}
	as := user{Name: name, UID: header.Get(authenticationv1.ImpersonateUIDHeader),
		Groups: header.Values(authenticationv1.ImpersonateGroupHeader)}
	check := func(group, resource, sub, namespace, name string) error {
		a := attributes{user: u, verb: "impersonate", resource: true, group: group, kind: resource, subresource: sub,
			namespace: namespace, name: name}
		if ok, reason := s.authorized(s.reader(), a); !ok {
			return forbidden(a, reason)
		}
		return nil
	}
	resource, namespace, short := "users", "", name
	if rest, ok := strings.CutPrefix(name, serviceAccountPrefix); ok {
		if ns, account, ok := strings.Cut(rest, ":"); ok {
			resource, namespace, short = "serviceaccounts", ns, account
			if len(as.Groups) == 0 {
				as.Groups = serviceAccountUser(ns, account, "").Groups
			}
		}
	}
	if err := check("", resource, "", namespace, short); err != nil {
		return u, err
	}
	for _, group := range header.Values(authenticationv1.ImpersonateGroupHeader) {
		if err := check("", "groups", "", "", group); err != nil {
			return u, err
		}
	}
	if as.UID != "" {
		if err := check("authentication.k8s.io", "uids", "", "", as.UID); err != nil {
			return u, err
		}
	}
	for key, values := range header {
		extra, ok := strings.CutPrefix(strings.ToLower(key),
			strings.ToLower(authenticationv1.ImpersonateUserExtraHeaderPrefix))
		if !ok {
			continue
		}
		if plain, err := url.PathUnescape(extra); err == nil {
			extra = plain
		}
		for _, value := range values {
			if err := check("authentication.k8s.io", "userextras", extra, "", value); err != nil {
				return u, err
			}
		}
		if as.Extra == nil {
			as.Extra = map[string][]string{}
		}
		as.Extra[extra] = values
	}
	if name != "system:anonymous" && !slices.Contains(as.Groups, groupAuthenticated) {
		as.Groups = append(slices.Clone(as.Groups), groupAuthenticated)
	}
	return as, nil
}

func uidOf(item *store.Item) string {
	uid, _ := metaOf(item.Object)["uid"].(string)
	return uid
}

func deleted(item *store.Item) bool { return metaOf(item.Object)["deletionTimestamp"] != nil }

func (u user) info() authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}
