package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
)

// shownKind is a kind that get prints with the table of the API server.
type shownKind struct {
	group, plural string
	use           string // the subcommand of get
	aliases       []string
	short         string
	namespace     string // of all objects; empty: the namespace of -n
	clusterScoped bool
}

var shownKinds = []shownKind{
	{group: "placement.muster.dev", plural: "placements", use: "placements", aliases: []string{"placement"},
		short: "Show Placements and the number of selected clusters"},
	{group: "placement.muster.dev", plural: "worksets", use: "worksets", aliases: []string{"workset"},
		short: "Show WorkSets and the progress of their distribution"},
	{group: "placement.muster.dev", plural: "clusterplacements", use: "clusterplacements",
		aliases: []string{"clusterplacement"}, clusterScoped: true,
		short: "Show ClusterPlacements of platform teams and the number of selected clusters"},
	{group: "placement.muster.dev", plural: "clusterworksets", use: "clusterworksets",
		aliases: []string{"clusterworkset"}, clusterScoped: true,
		short: "Show ClusterWorkSets of platform teams and the progress of their distribution"},
	{group: "work.muster.dev", plural: "works", use: "works", aliases: []string{"work"},
		short: "Show Works in the namespace of a member"},
	{group: "addon.muster.dev", plural: "addons", use: "addons", aliases: []string{"addon"}, clusterScoped: true,
		short: "Show Addons and the number of members on which each is available"},
	{group: "addon.muster.dev", plural: "memberaddons", use: "memberaddons", aliases: []string{"memberaddon"},
		short: "Show MemberAddons in the namespace of a member"},
	{group: "membership.muster.dev", plural: "joinrequests", use: "requests", namespace: membership.RegistrationNamespace,
		aliases: []string{"request", "joinrequests", "joinrequest"}, short: "Show JoinRequests and their status"},
}

// getOptions are the flags of get.
type getOptions struct {
	shownKind
	format        *output
	allNamespaces bool
	selector      string
	watch         bool
	names         []string
}

func (a *app) getResourceCommand(r shownKind) *cobra.Command {
	o := &getOptions{shownKind: r}
	cmd := &cobra.Command{Use: r.use + " [NAME...]", Aliases: r.aliases, Short: r.short}
	o.format = objectOutputFlag(cmd)
	flags := cmd.Flags()
	switch {
	case r.clusterScoped:
	case r.namespace != "":
		flags.StringVar(&o.namespace, "registration-namespace", r.namespace,
			"namespace on the hub for JoinTokens and JoinRequests")
	default:
		flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace (default that of the context)")
		flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show objects of all namespaces")
	}
	flags.StringVarP(&o.selector, "selector", "l", "", "label selector")
	flags.BoolVarP(&o.watch, "watch", "w", false, "after the list, show changes until the command is interrupted")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		o.names = names
		if err := o.validate(); err != nil {
			return err
		}
		return a.get(cmd.Context(), o)
	}
	return cmd
}

func (o *getOptions) validate() error {
	switch {
	case len(o.names) > 0 && o.selector != "":
		return usage("--selector cannot be combined with names")
	case len(o.names) > 0 && o.allNamespaces:
		return usage("--all-namespaces cannot be combined with names")
	case len(o.names) > 1 && o.watch:
		return usage("--watch shows all objects or one: give at most one name")
	case o.watch && !o.format.isTable() && o.format.format != outputName:
		return usage("--watch requires -o table, wide or name")
	}
	return nil
}

// get prints objects of a resource.
func (a *app) get(ctx context.Context, o *getOptions) error {
	config, err := a.hub()
	if err != nil {
		return err
	}
	if !o.clusterScoped && o.namespace == "" && !o.allNamespaces {
		if o.namespace, err = a.contextNamespace(); err != nil {
			return err
		}
	}
	hub := &hubClient{server: config.Host}
	if o.watch {
		config.Timeout = 0 // A watch has no end.
	}
	c, err := restClient(config)
	if err != nil {
		return err
	}
	var version string
	if o.format.isTable() || o.watch {
		version, err = a.getTable(ctx, c, o)
	} else {
		err = a.getObjects(ctx, c, o)
	}
	if err == nil && o.watch {
		err = a.watchTable(ctx, c, o, version)
	}
	return hub.explain(err)
}

// notFound returns an error for the object with a name, or for the kind if the API server does not serve it.
func (o *getOptions) notFound(ctx context.Context, c *rest.RESTClient, name string) error {
	if name != "" {
		_, err := o.request(c, "application/json", "").Param("limit", "1").Do(ctx).Raw()
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s %s: %w", strings.TrimSuffix(o.use, "s"), name, errNotFoundHere)
		}
	}
	return fmt.Errorf("the API server does not serve %s.%s: the cluster %w", o.plural, o.group, errNoHub)
}

// errNotFoundHere is the error for an object that does not exist, although its kind is served.
var errNotFoundHere = errors.New("not found")

// restClient returns a client for requests for any kind.
func restClient(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// tableAccept is the Accept header that requests the table that kubectl prints.
const tableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io"

func (o *getOptions) request(c *rest.RESTClient, accept, name string) *rest.Request {
	path := []string{"/apis", o.group, "v1alpha1"}
	if o.namespace != "" && !o.clusterScoped && !o.allNamespaces {
		path = append(path, "namespaces", url.PathEscape(o.namespace))
	}
	path = append(path, o.plural)
	if name != "" {
		path = append(path, url.PathEscape(name))
	}
	request := c.Get().AbsPath(path...).SetHeader("Accept", accept)
	if o.selector != "" {
		request = request.Param("labelSelector", o.selector)
	}
	return request
}

// each calls do with the response of each request. Without names, it sends one request for all objects; otherwise one
// for each name.
func (o *getOptions) each(ctx context.Context, c *rest.RESTClient, accept string, do func([]byte) error) error {
	names := o.names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		data, err := o.request(c, accept, name).Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			return o.notFound(ctx, c, name)
		}
		if err != nil {
			return err
		}
		if err := do(data); err != nil {
			return err
		}
	}
	return nil
}

// getTable prints the table of the API server, and returns the resourceVersion of the list.
func (a *app) getTable(ctx context.Context, c *rest.RESTClient, o *getOptions) (version string, err error) {
	var all metav1.Table
	err = o.each(ctx, c, tableAccept, func(data []byte) error {
		var part metav1.Table
		if err := json.Unmarshal(data, &part); err != nil {
			return fmt.Errorf("read the response of the API server: %w", err)
		}
		all.ColumnDefinitions, version = part.ColumnDefinitions, part.ResourceVersion
		all.Rows = append(all.Rows, part.Rows...)
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(all.Rows) == 0 && !o.watch {
		a.note("No resources found.")
		return version, nil
	}
	return version, a.printTable(o, &all, true)
}

func (a *app) printTable(o *getOptions, from *metav1.Table, header bool) error {
	var rows table
	var shown []int
	if o.allNamespaces {
		rows.header = append(rows.header, "NAMESPACE")
	}
	for i, column := range from.ColumnDefinitions {
		if column.Priority == 0 || o.format.format == outputWide {
			shown, rows.header = append(shown, i), append(rows.header, strings.ToUpper(column.Name))
		}
	}
	for _, row := range from.Rows {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
			return fmt.Errorf("read the response of the API server: %w", err)
		}
		if o.format.format == outputName {
			if err := a.line("%s.%s/%s", strings.TrimSuffix(o.plural, "s"), o.group, object.Name); err != nil {
				return err
			}
			continue
		}
		var cells []string
		if o.allNamespaces {
			cells = append(cells, object.Namespace)
		}
		for _, i := range shown {
			cell := ""
			if i < len(row.Cells) && row.Cells[i] != nil {
				cell = fmt.Sprint(row.Cells[i])
			}
			cells = append(cells, cell)
		}
		rows.add(cells...)
	}
	if o.format.format == outputName {
		return nil
	}
	return rows.writeRows(a.out, header)
}

// watchTable prints a row for each change until the context ends.
func (a *app) watchTable(ctx context.Context, c *rest.RESTClient, o *getOptions, version string) error {
	request := o.request(c, tableAccept, "").Param("watch", "true").Param("resourceVersion", version)
	if len(o.names) > 0 {
		request = request.Param("fieldSelector", "metadata.name="+o.names[0])
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	events := json.NewDecoder(stream)
	var columns []metav1.TableColumnDefinition
	for {
		var event metav1.WatchEvent
		err := events.Decode(&event)
		switch {
		case ctx.Err() != nil:
			return nil // The user has ended the watch.
		case errors.Is(err, io.EOF):
			return errors.New("the API server has ended the watch: repeat the command")
		case err != nil:
			return fmt.Errorf("watch %s: %w", o.use, err)
		}
		if event.Type == "ERROR" {
			var status metav1.Status
			if err := json.Unmarshal(event.Object.Raw, &status); err != nil {
				return fmt.Errorf("watch %s: %w", o.use, err)
			}
			return fmt.Errorf("watch %s: %w", o.use, &apierrors.StatusError{ErrStatus: status})
		}
		var changed metav1.Table
		if err := json.Unmarshal(event.Object.Raw, &changed); err != nil {
			return fmt.Errorf("watch %s: %w", o.use, err)
		}
		if len(changed.ColumnDefinitions) > 0 {
			columns = changed.ColumnDefinitions // Only the first event has columns.
		}
		changed.ColumnDefinitions = columns
		if err := a.printTable(o, &changed, false); err != nil {
			return err
		}
	}
}

// getObjects prints the objects: one object for one name, otherwise a list.
func (a *app) getObjects(ctx context.Context, c *rest.RESTClient, o *getOptions) error {
	list := &unstructured.UnstructuredList{}
	err := o.each(ctx, c, "application/json", func(data []byte) error {
		if len(o.names) == 0 {
			return list.UnmarshalJSON(data)
		}
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(data); err != nil {
			return err
		}
		list.Items = append(list.Items, object)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range list.Items {
		list.Items[i].SetManagedFields(nil)
	}
	if len(o.names) == 1 {
		return o.format.print(a.out, &list.Items[0], table{})
	}
	kind := cmp.Or(list.GroupVersionKind(), schema.GroupVersionKind{Version: "v1", Kind: "List"})
	list.SetGroupVersionKind(kind)
	return o.format.print(a.out, list, table{})
}
