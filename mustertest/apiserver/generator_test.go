package apiserver_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
)

// generator creates the random requests of a seed.
type generator struct {
	random            *rand.Rand
	namespace, suffix string
}

func pick[T any](g *generator, options ...T) T { return options[g.random.IntN(len(options))] }

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

type object = map[string]any

func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// resource is a kind for which requests are generated.
type resource struct {
	kind, api, collection string
	namespaced, status    bool
	content               func(g *generator, obj object)
}

var resources = []resource{
	{kind: "ConfigMap", api: "v1", collection: "configmaps", namespaced: true, content: func(g *generator, obj object) {
		data := object{pick(g, "a", "b", "c.d"): pick(g, "1", "2")}
		if g.chance(5) {
			data["bad key"] = "x"
		}
		if g.chance(4) {
			data["a"] = 7
		}
		obj["data"] = data
		if g.chance(5) {
			obj["immutable"] = true
		}
	}},
	{kind: "Secret", api: "v1", collection: "secrets", namespaced: true, content: func(g *generator, obj object) {
		switch g.random.IntN(4) {
		case 0:
			obj["stringData"] = object{"a": pick(g, "1", "2")}
		case 1:
			obj["data"] = object{"a": "YQ==", "b": "Yg=="}
		case 2:
			obj["data"] = object{"a": pick(g, "YQ==", "not base64!")}
		}
		if g.chance(10) {
			obj["type"] = pick(g, "kubernetes.io/tls", "example.com/x", "kubernetes.io/dockerconfigjson")
		}
	}},
	{kind: "Widget", api: "example.com/v1", collection: "widgets", namespaced: true, status: true, content: widget},
	{kind: "Widget", api: "example.com/v1", collection: "widgets", namespaced: true, status: true, content: widget},
	{kind: "Lease", api: "coordination.k8s.io/v1", collection: "leases", namespaced: true, content: func(g *generator,
		obj object) {
		obj["spec"] = object{"holderIdentity": pick(g, "me", "you"), "leaseDurationSeconds": pick(g, 10, 15, 0),
			"renewTime": pick(g, "2026-01-02T03:04:05.000006Z", "2026-01-02T03:04:06.000000Z")}
	}},
	{kind: "Role", api: "rbac.authorization.k8s.io/v1", collection: "roles", namespaced: true, content: func(g *generator,
		obj object) {
		obj["rules"] = []any{object{"apiGroups": []string{""}, "resources": []string{pick(g, "configmaps", "secrets")},
			"verbs": pick(g, []string{"get", "list"}, []string{"*"}, []string{}, []string{"get", "create", "update", "patch",
				"delete"})}}
	}},
	{kind: "RoleBinding", api: "rbac.authorization.k8s.io/v1", collection: "rolebindings", namespaced: true,
		content: func(g *generator, obj object) {
			obj["roleRef"] = object{"kind": pick(g, "Role", "Role", "ClusterRole"), "name": pick(g, "a", "b", "c"),
				"apiGroup": "rbac.authorization.k8s.io"}
			obj["subjects"] = []any{object{"kind": pick(g, "User", "Group", "Thing"), "name": pick(g, "dev", "devs")}}
		}},
	{kind: "ServiceAccount", api: "v1", collection: "serviceaccounts", namespaced: true, content: func(g *generator,
		obj object) {
		if g.chance(30) {
			obj["automountServiceAccountToken"] = g.chance(50)
		}
	}},
	{kind: "PriorityClass", api: "scheduling.k8s.io/v1", collection: "priorityclasses", content: func(g *generator,
		obj object) {
		obj["value"], obj["preemptionPolicy"] = 7, "PreemptLowerPriority"
		obj["description"] = pick(g, "a", "b")
	}},
}

func widget(g *generator, obj object) {
	spec := object{"color": pick(g, "red", "red", "green", "blue", "blue")}
	add := func(percent int, key string, value any) {
		if g.chance(percent) {
			spec[key] = value
		}
	}
	add(40, "size", pick[any](g, 1, 2, 9, 11, -1, "x", 3.5))
	add(20, "max", pick(g, 1, 5))
	add(20, "fixed", pick(g, "f", "g"))
	add(20, "name", pick(g, "abc", "toolong", "ABC"))
	add(20, "any", object{"x": object{"y": g.random.IntN(3)}, "apiVersion": "z"})
	add(20, "port", pick[any](g, 80, "http", true))
	add(20, "tags", pick(g, []string{"a"}, []string{"a", "b"}, []string{"a", "a"}))
	add(30, "parts", pick(g, []any{object{"id": "1"}}, []any{object{"id": "1", "n": 1}, object{"id": "2"}},
		[]any{object{"id": "1"}, object{"id": "1"}}, []any{object{"n": 3}}))
	add(20, "nested", pick[any](g, object{"a": "z"}, object{"b": nil}, object{}, nil, object{"a": nil}))
	add(10, "unknown", "field")
	add(5, "color", pick[any](g, "pink", 3, nil))
	obj["spec"] = spec
	if g.chance(20) {
		obj["status"] = object{"ready": true, "count": pick(g, 1, -1)}
	}
	if g.chance(4) {
		delete(obj, "spec")
	}
}

func (g *generator) path(r resource, name string) string {
	path := "/apis/" + r.api
	if r.api == "v1" {
		path = "/api/v1"
	}
	if r.namespaced {
		path += "/namespaces/" + g.namespace
	}
	path += "/" + r.collection
	if name != "" {
		path += "/" + name
	}
	return path
}

func (g *generator) name(r resource) string {
	name := pick(g, "a", "b", "c")
	if !r.namespaced {
		name += "-" + g.suffix
	}
	return name
}

func (g *generator) object(r resource, name string) object {
	metadata := object{"name": name}
	add := func(percent int, key string, value any) {
		if g.chance(percent) {
			metadata[key] = value
		}
	}
	add(40, "labels", object{pick(g, "a", "b"): pick(g, "1", "2")})
	add(20, "annotations", object{"note": pick(g, "x", "y")})
	add(8, "finalizers", pick(g, []string{"example.com/f"}, []string{"example.com/f", "example.com/g"}, []string{"short"}))
	add(3, "labels", object{"bad key!": "v"})
	add(3, "namespace", "elsewhere")
	add(3, "generation", 17)
	add(3, "creationTimestamp", "2020-01-01T00:00:00Z")
	add(3, "deletionTimestamp", "2020-01-01T00:00:00Z")
	add(3, "unknownField", "x")
	obj := object{"apiVersion": r.api, "kind": r.kind, "metadata": metadata}
	r.content(g, obj)
	if g.chance(2) && r.kind != "Widget" { // See the package documentation.
		obj["kind"] = "Other"
	}
	if g.chance(2) && r.kind != "Widget" { // The fields would be unknown, and kube-apiserver would return warnings.
		obj["apiVersion"] = "example.com/v9"
	}
	if g.chance(3) {
		obj["extra"] = object{"a": 1}
	}
	return obj
}

func (g *generator) options(query url.Values) string {
	if g.chance(10) {
		query.Set("dryRun", pick(g, "All", "All", "All", "None"))
	}
	if g.chance(20) {
		query.Set("fieldValidation", pick(g, "Strict", "Ignore", "Warn", "Wrong"))
	}
	if g.chance(30) {
		query.Set("fieldManager", pick(g, "one", "two"))
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

func (g *generator) next() step {
	s := g.request()
	if g.chance(10) {
		s.User = "dev"
	}
	return s
}

func (g *generator) request() step {
	r := pick(g, resources...)
	name := g.name(r)
	key := r.kind + "/" + name
	const media = "application/json"
	switch g.random.IntN(16) {
	case 0, 1, 2:
		obj := g.object(r, name)
		metadata, _ := obj["metadata"].(object)
		if g.chance(5) {
			delete(metadata, "name")
			if g.chance(80) {
				metadata["generateName"] = "gen-"
			}
			delete(metadata, "finalizers")
		}
		if g.chance(3) {
			metadata["resourceVersion"] = "5"
		}
		if g.chance(3) {
			metadata["uid"] = "x"
		}
		return step{Method: "POST", Path: g.path(r, "") + g.options(url.Values{}), Type: media, Body: text(obj)}
	case 3:
		return step{Method: "GET", Path: g.path(r, name), Accept: g.accept()}
	case 4:
		return g.list(r)
	case 5, 6:
		obj := g.object(r, name)
		metadata, _ := obj["metadata"].(object)
		metadata["resourceVersion"] = pick(g, "${rv:"+key+"}", "${rv:"+key+"}", "${rv:"+key+"}", "${old:"+key+"}", "", "junk")
		if g.chance(10) {
			metadata["uid"] = pick(g, "${uid:"+key+"}", "wrong")
		}
		if g.chance(3) {
			metadata["name"] = "other"
		}
		sub := ""
		if r.status && g.chance(30) {
			sub = "/status"
		}
		return step{Method: "PUT", Path: g.path(r, name) + sub + g.options(url.Values{}), Type: media, Body: text(obj)}
	case 7, 8:
		return g.mergePatch(r, name, key)
	case 9:
		return g.jsonPatch(r, name, key)
	case 10, 11, 12:
		return g.apply(r, name)
	case 13, 14:
		return g.delete(r, name, key)
	}
	if g.chance(20) {
		return g.unusual(r, name)
	}
	if g.chance(30) && r.namespaced {
		query := url.Values{"labelSelector": {pick(g, "a=1", "b", "!a")}}
		return step{Method: "DELETE", Path: g.path(r, "") + "?" + query.Encode(), Type: media, Body: "{}"}
	}
	return step{Method: "GET", Path: g.path(r, name)}
}

func (g *generator) accept() string {
	return pick(g, "", "", "application/json", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "text/html",
		"*/*",
		"application/json;as=Unknown;g=meta.k8s.io;v=v1,application/json")
}

func (g *generator) list(r resource) step {
	query := url.Values{}
	if g.chance(30) {
		query.Set("labelSelector", pick(g, "a=1", "a in (1,2)", "!a", "b", "a!=2", "=="))
	}
	if g.chance(30) {
		fields := []string{"metadata.name=a", "metadata.name!=a", "spec.nope=1"}
		if r.kind == "Widget" {
			fields = append(fields, "spec.color=red", "spec.color!=red")
		}
		if r.kind == "Secret" {
			fields = append(fields, "type=Opaque", "type!=Opaque")
		}
		query.Set("fieldSelector", pick(g, fields...))
	}
	if g.chance(30) {
		query.Set("limit", pick(g, "1", "2", "100", "x"))
	}
	if g.chance(10) {
		query.Set("resourceVersion", pick(g, "junk", "99999999999999"))
		if g.chance(50) {
			query.Set("resourceVersionMatch", pick(g, "Wrong", "Exact"))
		}
	}
	if query.Get("resourceVersion") == "99999999999999" && query.Get("resourceVersionMatch") != "Wrong" {
		query.Set("resourceVersion", "junk") // kube-apiserver waits for three seconds
	}
	if g.chance(5) {
		query.Set("continue", "junk")
	}
	return step{Method: "GET", Path: g.path(r, "") + "?" + query.Encode(), Accept: strings.ReplaceAll(g.accept(),
		"PartialObjectMetadata;", "PartialObjectMetadataList;")}
}

func (g *generator) mergePatch(r resource, name, key string) step {
	obj := g.object(r, name)
	delete(obj, "apiVersion")
	delete(obj, "kind")
	metadata, _ := obj["metadata"].(object)
	delete(metadata, "name")
	if g.chance(20) {
		metadata["resourceVersion"] = pick(g, "${rv:"+key+"}", "${old:"+key+"}")
	}
	if g.chance(10) {
		metadata["finalizers"] = nil
	}
	if g.chance(10) {
		metadata["labels"] = nil
	}
	if g.chance(10) {
		obj = object{"metadata": object{"labels": object{"a": nil}}}
	}
	if g.chance(10) {
		obj = object{"metadata": object{"finalizers": nil}}
	}
	media := "application/merge-patch+json"
	if r.kind != "Widget" && g.chance(50) || g.chance(3) {
		media = "application/strategic-merge-patch+json"
	}
	sub := ""
	if r.status && g.chance(40) {
		sub = "/status"
		obj = object{"status": object{"count": g.random.IntN(3)}, "metadata": object{"labels": object{"s": "1"}}}
	}
	body := text(obj)
	if g.chance(3) {
		body = pick(g, "[]", "{", `"x"`, "")
	}
	return step{Method: "PATCH", Path: g.path(r, name) + sub + g.options(url.Values{}), Type: media, Body: body}
}

func (g *generator) jsonPatch(r resource, name, key string) step {
	operations := []any{
		object{"op": "add", "path": "/metadata/labels", "value": object{"a": pick(g, "1", "2")}},
		object{"op": "add", "path": "/metadata/annotations/note", "value": "z"},
		object{"op": "remove", "path": "/metadata/labels"},
		object{"op": "test", "path": "/metadata/name", "value": pick(g, "a", name)},
		object{"op": "replace", "path": "/metadata/uid", "value": "x"},
		object{"op": "test", "path": "/metadata/resourceVersion", "value": "${old:" + key + "}"},
		object{"op": "replace", "path": "/metadata/name", "value": "other"},
		object{"op": "wrong", "path": "/x"},
		object{"op": "remove", "path": "/metadata/finalizers"},
		object{"op": "add", "path": "/spec/size", "value": pick[any](g, 3, 99, "x")},
		object{"op": "add", "path": "/data/z", "value": "eg=="},
	}
	chosen := []any{}
	for range 1 + g.random.IntN(2) {
		chosen = append(chosen, pick(g, operations...))
	}
	return step{Method: "PATCH", Path: g.path(r, name) + g.options(url.Values{}), Type: "application/json-patch+json",
		Body: text(chosen)}
}

func (g *generator) apply(r resource, name string) step {
	obj := g.object(r, name)
	metadata, _ := obj["metadata"].(object)
	delete(metadata, "unknownField") // see the package documentation
	query := url.Values{}
	if !g.chance(3) {
		query.Set("fieldManager", pick(g, "one", "two"))
	}
	if g.chance(30) {
		query.Set("force", "true")
	}
	if g.chance(8) {
		query.Set("dryRun", "All")
	}
	if g.chance(15) {
		query.Set("fieldValidation", pick(g, "Strict", "Ignore", "Warn"))
	}
	sub := ""
	if r.status && g.chance(15) {
		sub = "/status"
		obj["status"] = object{"count": g.random.IntN(3)}
	}
	return step{Method: "PATCH", Path: g.path(r, name) + sub + "?" + query.Encode(), Type: "application/apply-patch+yaml",
		Body: text(obj)}
}

func (g *generator) delete(r resource, name, key string) step {
	options := object{"apiVersion": "v1", "kind": "DeleteOptions"}
	if g.chance(20) {
		options["preconditions"] = object{"uid": pick(g, "${uid:"+key+"}", "wrong")}
	}
	if g.chance(10) {
		options["preconditions"] = object{"resourceVersion": pick(g, "${rv:"+key+"}", "${old:"+key+"}")}
	}
	if g.chance(15) {
		options["propagationPolicy"] = pick(g, "Background", "Wrong")
	}
	if g.chance(10) {
		options["dryRun"] = pick(g, []string{"All"}, []string{"Wrong"})
	}
	body := text(options)
	if g.chance(20) {
		body = ""
	}
	return step{Method: "DELETE", Path: g.path(r, name), Type: "application/json", Body: body}
}

// unusual returns requests that no client sends intentionally.
func (g *generator) unusual(r resource, name string) step {
	return pick(g,
		step{Method: "POST", Path: g.path(r, name), Type: "application/json", Body: "{}"},
		step{Method: "PUT", Path: g.path(r, ""), Type: "application/json", Body: "{}"},
		step{Method: "PATCH", Path: g.path(r, name), Type: "text/plain", Body: "{}"},
		step{Method: "POST", Path: g.path(r, ""), Type: "text/plain", Body: "{}"},
		step{Method: "POST", Path: g.path(r, ""), Type: "application/json", Body: "{"},
		step{Method: "POST", Path: g.path(r, ""), Type: "application/json", Body: "[]"},
		step{Method: "POST", Path: g.path(r, ""), Type: "application/json", Body: ""},
		step{Method: "GET", Path: g.path(r, name) + "/nothing"},
		step{Method: "GET", Path: "/apis/example.com/v1/nothings"},
		step{Method: "GET", Path: "/apis/nothing.example.com/v1/nothings"},
		step{Method: "GET", Path: "/nothing"},
		step{Method: "GET", Path: fmt.Sprintf("/api/v1/namespaces/none-%s/configmaps", g.suffix)},
		step{Method: "POST", Path: fmt.Sprintf("/api/v1/namespaces/none-%s/configmaps", g.suffix), Type: "application/json",
			Body: `{"metadata":{"name":"a"}}`},
	)
}
