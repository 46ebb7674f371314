package apiserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
)

// tokens contains the bearer tokens of users, and the key that signs tokens of ServiceAccounts.
type tokens struct {
	mu     sync.RWMutex
	static map[string]user
	key    [sha256.Size]byte // signs ServiceAccount tokens
}

// add adds a token for a user.
func (t *tokens) add(token string, u user) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.static[token] = u
}

// user returns the user of a token that was passed to add.
func (t *tokens) user(token string) (user, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	u, ok := t.static[token]
	return u, ok
}

// claims are the claims of a ServiceAccount token.
type claims struct {
	Audience   []string      `json:"aud"`
	Expiry     int64         `json:"exp"`
	IssuedAt   int64         `json:"iat"`
	Issuer     string        `json:"iss"`
	ID         string        `json:"jti"`
	Kubernetes privateClaims `json:"kubernetes.io"`
	NotBefore  int64         `json:"nbf"`
	Subject    string        `json:"sub"`
}

type privateClaims struct {
	Namespace string     `json:"namespace"`
	Account   objectRef  `json:"serviceaccount"`
	Secret    *objectRef `json:"secret,omitempty"`
	Pod       *objectRef `json:"pod,omitempty"`
}

type objectRef struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

var encoding = base64.RawURLEncoding

// write returns a signed token with the claims. The signature is an HMAC that only this server can verify.
func (t *tokens) write(c claims) (string, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	text := encoding.EncodeToString([]byte(`{"alg":"HS256","kid":"in-memory"}`)) + "." + encoding.EncodeToString(body)
	return text + "." + encoding.EncodeToString(t.sign(text)), nil
}

func (t *tokens) sign(text string) []byte {
	mac := hmac.New(sha256.New, t.key[:])
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// read returns the claims of a token that this server has signed.
func (t *tokens) read(token string) (claims, bool) {
	at := strings.LastIndex(token, ".")
	if at < 0 {
		return claims{}, false
	}
	signature, err := encoding.DecodeString(token[at+1:])
	if err != nil || !hmac.Equal(signature, t.sign(token[:at])) {
		return claims{}, false
	}
	_, body, _ := strings.Cut(token[:at], ".")
	text, err := encoding.DecodeString(body)
	if err != nil {
		return claims{}, false
	}
	var c claims
	return c, json.Unmarshal(text, &c) == nil
}
