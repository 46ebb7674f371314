package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// show prints the output of kubectl get, which is the table that the API server returns.
func (f *fleet) show(ctx context.Context, what ...string) error {
	for _, w := range what {
		say("\n$ kubectl get %s", w)
		resource, _, namespaced := strings.Cut(w, " -A")
		table, err := f.get(ctx, resource)
		if err != nil {
			return fmt.Errorf("get %s: %w", resource, err)
		}
		if err := write(table, namespaced); err != nil {
			return fmt.Errorf("read the table of %s: %w", resource, err)
		}
	}
	say("")
	return nil
}

// get requests a resource of add-ons as a table.
func (f *fleet) get(ctx context.Context, resource string) (*metav1.Table, error) {
	h, err := rest.HTTPClientFor(f.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.config.Host+"/apis/addon.muster.dev/v1alpha1/"+
		resource, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := h.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	table := &metav1.Table{}
	return table, json.NewDecoder(response.Body).Decode(table)
}

func write(table *metav1.Table, namespaced bool) error {
	if len(table.Rows) == 0 {
		say("No resources found")
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	var header []string
	if namespaced {
		header = append(header, "NAMESPACE")
	}
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 { // other columns are for -o wide
			header = append(header, strings.ToUpper(column.Name))
		}
	}
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, row := range table.Rows {
		var cells []string
		if namespaced {
			object := &metav1.PartialObjectMetadata{}
			if err := json.Unmarshal(row.Object.Raw, object); err != nil {
				return err
			}
			cells = append(cells, object.Namespace)
		}
		for i, column := range table.ColumnDefinitions {
			switch {
			case column.Priority > 0:
			case row.Cells[i] == nil:
				cells = append(cells, "")
			default:
				cells = append(cells, fmt.Sprint(row.Cells[i]))
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
