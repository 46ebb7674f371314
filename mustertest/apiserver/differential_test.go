package apiserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var (
	seeds     = flag.Int("differential.seeds", 10, "number of seeds of the differential test")
	firstSeed = flag.Int("differential.first", 1, "first seed of the differential test")
	length    = flag.Int("differential.length", 80, "requests of each seed of the differential test")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(localplane.Run(m))
}

// step is a request to both servers. In Path and Body, ${uid:KEY}, ${rv:KEY} and ${old:KEY} are placeholders for the
// UID, the resourceVersion and an earlier resourceVersion of an object. Each server receives the values that it
// returned itself.
type step struct {
	User, Method, Path, Type, Accept, Body string
	// Ignore has the paths of fields that differ intentionally. They are removed before the comparison.
	Ignore []string
}

func (s step) String() string {
	return fmt.Sprintf("%s %s %s (%s) as %q\n%s", s.Method, s.Path, s.Type, s.Accept, s.User, s.Body)
}

// target is one of the compared servers.
type target struct {
	base    string
	clients map[string]*http.Client
	uids    map[string]string // real to symbolic
	current map[string][]string
	uid     map[string]string
}

func newTarget(t testing.TB, configs map[string]*rest.Config) *target {
	t.Helper()
	out := &target{clients: map[string]*http.Client{}, uids: map[string]string{}, current: map[string][]string{},
		uid: map[string]string{}}
	for user, config := range configs {
		config := rest.CopyConfig(config)
		config.UserAgent = "differential/1"
		c, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		out.clients[user], out.base = c, strings.TrimSuffix(config.Host, "/")
	}
	return out
}

var placeholder = regexp.MustCompile(`\$\{(uid|rv|old):([^}]*)\}`)

func (g *target) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		parts := placeholder.FindStringSubmatch(found)
		versions := g.current[parts[2]]
		switch {
		case parts[1] == "uid" && g.uid[parts[2]] != "":
			return g.uid[parts[2]]
		case parts[1] == "uid":
			return "00000000-0000-0000-0000-000000000000"
		case len(versions) == 0:
			return "1"
		case parts[1] == "rv":
			return versions[len(versions)-1]
		}
		return versions[0]
	})
}

// result is a normalized response.
type result struct {
	Code     int
	Type     string
	Warnings []string
	Body     any
}

func (g *target) send(t testing.TB, s step) result {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), s.Method, g.base+g.fill(s.Path),
		strings.NewReader(g.fill(s.Body)))
	require.NoError(t, err)
	request.Header.Set("User-Agent", "differential/1")
	if s.Type != "" {
		request.Header.Set("Content-Type", s.Type)
	}
	if s.Accept != "" {
		request.Header.Set("Accept", s.Accept)
	}
	response, err := g.clients[s.User].Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	out := result{Code: response.StatusCode, Type: response.Header.Get("Content-Type"),
		Warnings: response.Header.Values("Warning")}
	slices.Sort(out.Warnings)
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		out.Body = string(body)
		return out
	}
	g.learn(value)
	out.Body = g.normalize("", value)
	for _, path := range s.Ignore {
		out.Body = without(out.Body, strings.Split(path, "."))
	}
	return out
}

func without(value any, path []string) any {
	switch v := value.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
			return v
		}
		if next, ok := v[path[0]]; ok {
			v[path[0]] = without(next, path[1:])
		}
		return v
	case []any:
		for i := range v {
			v[i] = without(v[i], path)
		}
		return v
	}
	return value
}

// learn records the UIDs and resourceVersions of a response, by kind and name.
func (g *target) learn(value any) {
	obj, _ := value.(map[string]any)
	if items, ok := obj["items"].([]any); ok {
		kind, _ := obj["kind"].(string)
		for _, item := range items {
			if fields, ok := item.(map[string]any); ok && fields["kind"] == nil {
				fields["kind"] = strings.TrimSuffix(kind, "List")
				g.learn(fields)
				delete(fields, "kind")
			} else {
				g.learn(item)
			}
		}
		return
	}
	metadata, _ := obj["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		return
	}
	key := fmt.Sprint(obj["kind"], "/", name)
	if uid, _ := metadata["uid"].(string); uid != "" {
		if g.uids[uid] == "" {
			g.uids[uid] = fmt.Sprint("uid-", len(g.uids))
		}
		g.uid[key] = uid
	}
	if version, _ := metadata["resourceVersion"].(string); version != "" {
		if !slices.Contains(g.current[key], version) {
			g.current[key] = append(g.current[key], version)
		}
	}
}

var (
	uuids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	generated = regexp.MustCompile(`\bgen-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	versions  = regexp.MustCompile(`(?i)(resource ?version[^0-9]{1,40}|current: |record \(|version: )\d+( \(\d+\))?`)
)

// normalize replaces values that may differ: UIDs, times, resourceVersions and generated names.
func (g *target) normalize(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, child := range v {
			out[k] = g.normalize(k, child)
		}
		if out["creationTimestamp"] == nil {
			delete(out, "creationTimestamp")
		}
		if out["continue"] == "" { // Lists of custom resources have this field.
			delete(out, "continue")
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, child := range v {
			out = append(out, g.normalize(key, child))
		}
		if key == "managedFields" || key == "causes" { // Errors of schemas have no order.
			slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			// Some strategies of Kubernetes validate metadata twice.
			out = slices.CompactFunc(out, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
		}
		return out
	case string:
		switch key {
		case "time", "creationTimestamp", "deletionTimestamp", "lastTransitionTime":
			return "TIME"
		case "resourceVersion":
			if v == "" {
				return ""
			}
			return "RV"
		case "ca.crt":
			return "CERTIFICATE"
		case "continue":
			if v == "" {
				return ""
			}
			return "CONTINUE"
		}
		v = uuids.ReplaceAllStringFunc(v, func(uid string) string {
			if g.uids[uid] == "" {
				return uid
			}
			return "UID"
		})
		if key == "message" {
			if before, _, several := strings.Cut(v, " is invalid: ["); several { // The causes contain the same messages.
				v = before
			}
			// The comparison with a schema visits the fields of an object in a random order, and ends at the first undeclared
			// one.
			if before, _, undeclared := strings.Cut(v, "): "); undeclared && strings.Contains(v,
				"field not declared in schema") {
				v = before + "): field not declared in schema"
			}
			v = versions.ReplaceAllString(v, "${1}RV")
			v = timestamps.ReplaceAllString(v, "TIME")
		}
		return generated.ReplaceAllString(v, "gen-XXXXX")
	}
	return value
}

var timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

func newTargets(t testing.TB) (real, memory *target) {
	t.Helper()
	// The plane is new, because the new in-memory server has no objects of an earlier run either.
	p := localplane.ForTest(t, localplane.Options{Name: "differential"})
	s := start(t, apiserver.Options{})
	real = newTarget(t, map[string]*rest.Config{"": p.Config(), "dev": p.User("dev", "devs")})
	memory = newTarget(t, map[string]*rest.Config{"": s.Admin(), "dev": s.Config("dev", "devs")})
	return real, memory
}

// both sends a step to both servers and compares the responses.
func both(t testing.TB, real, memory *target, s step) (result, bool) {
	t.Helper()
	want, got := real.send(t, s), memory.send(t, s)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n(-real +memory):\n%s", s, diff)
		return want, false
	}
	return want, true
}

func prepare(t testing.TB, real, memory *target, namespace string) {
	t.Helper()
	create := step{Method: "POST", Path: "/api/v1/namespaces", Type: "application/json",
		Body: fmt.Sprintf(`{"metadata":{"name":%q}}`, namespace), Ignore: []string{"metadata.managedFields"}}
	both(t, real, memory, create)
	for _, g := range []*target{real, memory} {
		for _, path := range []string{"/configmaps/kube-root-ca.crt", "/serviceaccounts/default"} {
			require.Eventually(t, func() bool {
				return g.send(t, step{Method: "GET", Path: "/api/v1/namespaces/" + namespace + path}).Code == 200
			}, time.Minute, 20*time.Millisecond, path)
		}
	}
}

func installWidgets(t testing.TB, real, memory *target) {
	t.Helper()
	for _, g := range []*target{real, memory} {
		code := g.send(t, step{Method: "POST", Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
			Type: "application/yaml", Body: widgetCRD}).Code
		require.Contains(t, []int{201, 409}, code)
		require.Eventually(t, func() bool {
			return g.send(t, step{Method: "GET", Path: "/apis/example.com/v1/widgets"}).Code == 200
		}, time.Minute, 20*time.Millisecond)
	}
}

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns: [{name: Color, type: string, jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [color]
            x-kubernetes-validations:
            - {rule: "!has(self.max) || self.size <= self.max", message: "size must not be larger than max"}
            properties:
              color: {type: string, enum: [red, green, blue]}
              size: {type: integer, default: 1, minimum: 0, maximum: 10}
              max: {type: integer}
              fixed:
                type: string
                x-kubernetes-validations: [{rule: "self == oldSelf", message: "fixed is immutable"}]
              name: {type: string, maxLength: 5, pattern: "^[a-z]*$"}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              port: {x-kubernetes-int-or-string: true}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [id]
                items:
                  type: object
                  required: [id]
                  properties: {id: {type: string}, "n": {type: integer, default: 7}}
              nested:
                type: object
                default: {}
                properties: {a: {type: string, default: x}, b: {type: string, nullable: true}}
          status:
            type: object
            properties:
              ready: {type: boolean}
              count: {type: integer, minimum: 0}
`

// TestDifferential_RandomRequests sends the same random requests to this server and to a real control plane, and
// compares all responses and watch events.
func TestDifferential_RandomRequests(t *testing.T) {
	real, memory := newTargets(t)
	installWidgets(t, real, memory)
	total := 0
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			namespace := fmt.Sprintf("diff-%d", seed)
			prepare(t, real, memory, namespace)
			g := &generator{random: rand.New(rand.NewPCG(uint64(seed), 1)), namespace: namespace, suffix: fmt.Sprint(seed)}
			watches := g.watches(t, real, memory)
			failed := 0
			var history []string
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("history of seed %d:\n%s", seed, strings.Join(history, "\n"))
				}
			})
			for i := range *length {
				s := g.next()
				total++
				history = append(history, fmt.Sprint(i, " ", s))
				if _, ok := both(t, real, memory, s); !ok {
					t.Logf("request %d of seed %d", i, seed)
					if failed++; failed == 5 {
						t.Fatal("too many differences")
					}
				}
			}
			for _, w := range watches {
				w.compare(t, real, memory)
			}
		})
	}
	t.Logf("%d seeds, %d requests", *seeds, total)
}

// watched is a pair of watches, one on each server.
type watched struct {
	path    string
	streams [2]*bufio.Reader
	end     func(t testing.TB, g *target)
}

func (g *generator) watches(t testing.TB, real, memory *target) []*watched {
	t.Helper()
	var out []*watched
	open := func(path, query, last string) {
		w := &watched{path: path}
		for i, target := range []*target{real, memory} {
			ctx, cancel := context.WithCancel(context.Background())
			t.Cleanup(cancel)
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.base+path+"?watch=true&"+query, nil)
			require.NoError(t, err)
			response, err := target.clients[""].Do(request)
			require.NoError(t, err)
			t.Cleanup(func() { _ = response.Body.Close() })
			require.Equal(t, 200, response.StatusCode)
			w.streams[i] = bufio.NewReader(response.Body)
		}
		w.end = func(t testing.TB, target *target) {
			code := target.send(t, step{Method: "POST", Path: path, Type: "application/json", Body: last}).Code
			require.Equal(t, 201, code)
		}
		out = append(out, w)
	}
	base := "/api/v1/namespaces/" + g.namespace
	end := `{"metadata":{"name":"zz-end","labels":{"a":"1"}}}`
	open(base+"/configmaps", "", end)
	open(base+"/secrets", "labelSelector=a%3D1", end)
	open("/apis/example.com/v1/namespaces/"+g.namespace+"/widgets", "fieldSelector=spec.color%3Dred",
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"zz-end"},"spec":{"color":"red"}}`)
	return out
}

func (w *watched) compare(t testing.TB, real, memory *target) {
	t.Helper()
	var events [2][]any
	for i, target := range []*target{real, memory} {
		w.end(t, target)
		for {
			line, err := w.streams[i].ReadBytes('\n')
			require.NoError(t, err)
			var event any
			require.NoError(t, json.Unmarshal(bytes.TrimSpace(line), &event))
			// The controller can update the ConfigMap kube-root-ca.crt at any time.
			if !bytes.Contains(line, []byte(`"name":"kube-root-ca.crt"`)) {
				events[i] = append(events[i], target.normalize("", event))
			}
			if bytes.Contains(line, []byte("zz-end")) {
				break
			}
		}
	}
	if diff := cmp.Diff(events[0], events[1]); diff != "" {
		t.Errorf("events of %s (-real +memory):\n%s", w.path, diff)
	}
}
