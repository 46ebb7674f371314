package apiserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metainternalversionvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

func (r *request) key() store.Key {
	key := store.Key{Resource: r.kind.Storage, Namespace: r.namespace, Name: r.name}
	if !r.kind.Namespaced {
		key.Namespace = ""
	}
	return key
}

func (s *Server) get(w http.ResponseWriter, r *request) error {
	if err := s.notNewer(r.query.Get("resourceVersion")); err != nil {
		return err
	}
	item := s.store.Get(r.key())
	if item == nil {
		return apierrors.NewNotFound(r.groupResource(), r.name)
	}
	s.item(w, r, http.StatusOK, item)
	return nil
}

// item writes a stored object as the response.
func (s *Server) item(w http.ResponseWriter, r *request, code int, item *store.Item) {
	if r.kind.Converts() {
		r.object(w, code, r.kind, r.kind.ToServed(item.Object))
		return
	}
	r.encoded(w, code, r.kind, item.Object, item.JSON)
}

// notNewer returns an error for a resourceVersion that does not exist yet. kube-apiserver would wait three seconds for
// it.
func (s *Server) notNewer(version string) error {
	if version == "" {
		return nil
	}
	wanted, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return badVersion(version, err)
	}
	if current := s.store.Revision(); wanted > current {
		return tooLarge(wanted, current)
	}
	return nil
}

func badVersion(version string, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v",
		field.Invalid(field.NewPath("resourceVersion"), version, err.Error())))
}

func tooLarge(wanted, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// listOptions decodes and validates the query of a list, a watch or a deletion of a collection.
func (r *request) listOptions() (*internalversion.ListOptions, error) {
	options := &internalversion.ListOptions{}
	query := r.query
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion,
		options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := metainternalversionvalidation.ValidateListOptions(options, true); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if options.LabelSelector == nil {
		options.LabelSelector = labels.Everything()
	}
	if options.FieldSelector == nil {
		options.FieldSelector = fields.Everything()
	}
	_, err := options.FieldSelector.Transform(func(label, value string) (string, string, error) {
		return label, value, r.kind.FieldLabel(label)
	})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return options, nil
}

// selection specifies the objects that a list or watch returns.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	kind      *kinds.Kind
}

func (r *request) selection(options *internalversion.ListOptions) selection {
	namespace := r.namespace
	if !r.kind.Namespaced {
		namespace = ""
	}
	return selection{namespace, options.LabelSelector, options.FieldSelector, r.kind}
}

func (s selection) everything() bool { return s.labels.Empty() && s.fields.Empty() }

func (s selection) matches(item *store.Item) bool {
	if s.namespace != "" && item.Key.Namespace != s.namespace {
		return false
	}
	if !s.labels.Empty() && !s.labels.Matches(labels.Set(labelsOf(item.Object))) {
		return false
	}
	return s.fields.Empty() || s.fields.Matches(s.kind.Fields(item.Object))
}

func labelsOf(obj kinds.Object) map[string]string {
	metadata, _ := obj["metadata"].(map[string]any)
	found, _ := metadata["labels"].(map[string]any)
	out := make(map[string]string, len(found))
	for key, value := range found {
		out[key], _ = value.(string)
	}
	return out
}

// continueToken has the same encoding as in kube-apiserver.
type continueToken struct {
	APIVersion      string `json:"v"`
	ResourceVersion int64  `json:"rv"`
	StartKey        string `json:"start"`
}

func (t continueToken) encode() string {
	out, _ := json.Marshal(t) // never returns an error
	return base64.RawURLEncoding.EncodeToString(out)
}

func decodeContinue(text string) (continueToken, error) {
	var token continueToken
	invalid := func(reason string) error {
		return apierrors.NewBadRequest("invalid continue token: continue key is not valid" + reason)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &token)
	}
	switch {
	case err != nil:
		return token, invalid(": " + err.Error())
	case token.APIVersion != "meta.k8s.io/v1":
		return token, invalid(fmt.Sprintf(": server does not recognize this encoded version %q", token.APIVersion))
	case token.ResourceVersion == 0:
		return token, invalid(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case token.StartKey == "":
		return token, invalid(": encoded start key empty (version meta.k8s.io/v1)")
	}
	return token, nil
}

// page is one page of a list.
type page struct {
	items     []*store.Item
	revision  uint64
	next      string
	remaining *int64
}

func (s *Server) list(w http.ResponseWriter, r *request) error {
	options, err := r.listOptions()
	if err != nil {
		return err
	}
	p, err := s.page(r, options)
	if err != nil {
		return err
	}
	body, err := r.encodeList(p)
	if err != nil {
		return err
	}
	r.header(w)
	reply(w, http.StatusOK, r.response.accept.media, body)
	return nil
}

func (s *Server) page(r *request, options *internalversion.ListOptions) (page, error) {
	chosen := r.selection(options)
	limit := int(options.Limit)
	var p page
	start := ""
	switch {
	case options.Continue != "":
		token, err := decodeContinue(options.Continue)
		if err != nil {
			return p, err
		}
		start = token.StartKey
		if token.ResourceVersion < 0 { // the client has accepted an inconsistent continuation
			p.items, p.revision = s.store.List(r.kind.Storage, chosen.namespace)
			break
		}
		p.revision = uint64(token.ResourceVersion)
		if p.items, err = s.store.ListAt(r.kind.Storage, chosen.namespace, p.revision); err != nil {
			return p, expiredContinue(continueToken{"meta.k8s.io/v1", -1, start})
		}
	case options.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		wanted, err := strconv.ParseUint(options.ResourceVersion, 10, 64)
		if err != nil {
			return p, badVersion(options.ResourceVersion, err)
		}
		switch p.items, err = s.store.ListAt(r.kind.Storage, chosen.namespace, wanted); {
		case err == nil:
			p.revision = wanted
		case errors.Is(err, store.ErrFuture):
			return p, tooLarge(wanted, s.store.Revision())
		default:
			return p, apierrors.NewResourceExpired("The provided resource version is too old; start a new list without it")
		}
	default:
		if err := s.notNewer(options.ResourceVersion); err != nil {
			return p, err
		}
		if options.ResourceVersion == "0" && options.ResourceVersionMatch == "" {
			limit = 0 // the watch cache serves this list and ignores the limit
		}
		p.items, p.revision = s.store.List(r.kind.Storage, chosen.namespace)
	}
	p.cut(chosen, start, limit)
	return p, nil
}

// cut keeps the matching items, from the start key on and up to limit.
func (p *page) cut(chosen selection, start string, limit int) {
	all := p.items
	p.items = make([]*store.Item, 0, len(all))
	for i, item := range all {
		key := item.Key.Namespace + "/" + item.Key.Name
		if chosen.namespace != "" || item.Key.Namespace == "" {
			key = item.Key.Name
		}
		if key+"\x00" <= start && start != "" || !chosen.matches(item) {
			continue
		}
		if limit > 0 && len(p.items) == limit {
			if chosen.everything() {
				left := int64(len(all) - i)
				p.remaining = &left
			}
			return
		}
		p.items = append(p.items, item)
		if limit > 0 && len(p.items) == limit && i < len(all)-1 {
			p.next = continueToken{"meta.k8s.io/v1", int64(p.revision), key + "\x00"}.encode()
		}
	}
	// Without further matches, there is no next page.
	if p.remaining == nil {
		p.next = ""
	}
}

func expiredContinue(next continueToken) error {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list " +
		"result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve " +
		"the " +
		"remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were " +
		"created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.Continue = next.encode()
	return err
}

func (r *request) encodeList(p page) ([]byte, error) {
	listMeta := metav1.ListMeta{
		ResourceVersion: strconv.FormatUint(p.revision, 10), Continue: p.next, RemainingItemCount: p.remaining,
	}
	objects := func() []kinds.Object {
		out := make([]kinds.Object, 0, len(p.items))
		for _, item := range p.items {
			out = append(out, r.kind.ToServed(item.Object))
		}
		return out
	}
	switch {
	case r.response.accept.as == "Table":
		table, err := tableOf(r.kind, objects(), r.query.Get("includeObject"), listMeta)
		if err != nil {
			return nil, err
		}
		return marshal(r.response.accept.media, table)
	case r.response.accept.as != "":
		var items []kinds.Object // null if there are none, as in kube-apiserver
		for _, obj := range objects() {
			items = append(items, partial(obj))
		}
		return marshal(r.response.accept.media, map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": listMeta, "items": items,
		})
	case r.response.accept.media == kinds.Protobuf:
		return r.protobufList(objects(), listMeta)
	}
	head, err := json.Marshal(map[string]any{
		"kind": r.kind.Names.ListKind, "apiVersion": r.kind.GVK.GroupVersion().String(), "metadata": listMeta,
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Write(head[:len(head)-1])
	out.WriteString(`,"items":[`)
	for i, item := range p.items {
		if i > 0 {
			out.WriteByte(',')
		}
		encoded, err := r.listedJSON(item)
		if err != nil {
			return nil, err
		}
		out.Write(encoded)
	}
	out.WriteString("]}\n")
	if r.response.accept.media == kinds.YAML {
		var whole map[string]any
		if err := json.Unmarshal(out.Bytes(), &whole); err != nil {
			return nil, err
		}
		return marshal(kinds.YAML, whole)
	}
	return out.Bytes(), nil
}

func (r *request) itemJSON(item *store.Item) ([]byte, error) {
	if r.kind.Converts() {
		return json.Marshal(r.kind.ToServed(item.Object))
	}
	return item.JSON()
}

// listedJSON encodes an item of a list. Items of built-in kinds have no apiVersion and kind.
func (r *request) listedJSON(item *store.Item) ([]byte, error) {
	switch {
	case !r.kind.Builtin():
		return r.itemJSON(item)
	case r.kind.Converts():
		obj := r.kind.ToServed(item.Object)
		delete(obj, "apiVersion")
		delete(obj, "kind")
		return json.Marshal(obj)
	}
	return item.ListJSON()
}

func (r *request) protobufList(objects []kinds.Object, listMeta metav1.ListMeta) ([]byte, error) {
	list, err := scheme.Scheme.New(r.kind.GVK.GroupVersion().WithKind(r.kind.Names.ListKind))
	if err != nil {
		return nil, notAcceptable()
	}
	typed := make([]runtime.Object, 0, len(objects))
	for _, obj := range objects {
		one, err := r.kind.Typed(obj)
		if err != nil {
			return nil, err
		}
		one.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // items of typed lists have no apiVersion and kind
		typed = append(typed, one)
	}
	if err := meta.SetList(list, typed); err != nil {
		return nil, err
	}
	if accessor, ok := list.(metav1.ListInterface); ok {
		setListMeta(accessor, listMeta)
	} else if accessor, ok := list.(metav1.ListMetaAccessor); ok {
		setListMeta(accessor.GetListMeta(), listMeta)
	}
	list.GetObjectKind().SetGroupVersionKind(r.kind.GVK.GroupVersion().WithKind(r.kind.Names.ListKind))
	return kinds.EncodeProtobuf(list)
}

func setListMeta(to metav1.ListInterface, from metav1.ListMeta) {
	to.SetResourceVersion(from.ResourceVersion)
	to.SetContinue(from.Continue)
	to.SetRemainingItemCount(from.RemainingItemCount)
}
