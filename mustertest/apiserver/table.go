package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
)

// tableOf returns a table with the column Name and the columns of the CustomResourceDefinition. Tables of built-in
// kinds have the columns Name and Age.
func tableOf(kind *kinds.Kind, objects []kinds.Object, include string,
	listMeta metav1.ListMeta) (*metav1.Table, error) {
	if include != "" && include != string(metav1.IncludeNone) && include != string(metav1.IncludeMetadata) &&
		include != string(metav1.IncludeObject) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("unrecognized includeObject value: %q", include))
	}
	table := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ListMeta: listMeta,
		ColumnDefinitions: []metav1.TableColumnDefinition{{
			Name: "Name", Type: "string", Format: "name",
			Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
		}},
		Rows: []metav1.TableRow{},
	}
	columns := kind.Columns()
	paths := make([]*jsonpath.JSONPath, len(columns))
	for i, column := range columns {
		description := column.Description
		if description == "" {
			description = fmt.Sprintf("Custom resource definition column (in JSONPath format): %s", column.JSONPath)
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: column.Name, Type: column.Type, Format: column.Format, Description: description, Priority: column.Priority,
		})
		paths[i] = jsonpath.New(column.Name).AllowMissingKeys(true)
		if err := paths[i].Parse("{" + column.JSONPath + "}"); err != nil {
			return nil, err
		}
	}
	for _, obj := range objects {
		row := metav1.TableRow{}
		metadata, _ := obj["metadata"].(map[string]any)
		row.Cells = append(row.Cells, metadata["name"])
		for _, path := range paths {
			row.Cells = append(row.Cells, cell(path, obj))
		}
		content := partial(obj)
		switch metav1.IncludeObjectPolicy(include) {
		case metav1.IncludeNone:
			content = nil
		case metav1.IncludeObject:
			content = obj
		}
		if content != nil {
			raw, err := json.Marshal(content)
			if err != nil {
				return nil, err
			}
			row.Object = runtime.RawExtension{Raw: raw}
		}
		table.Rows = append(table.Rows, row)
	}
	return table, nil
}

func cell(path *jsonpath.JSONPath, obj kinds.Object) any {
	results, err := path.FindResults(obj)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	switch value := results[0][0].Interface().(type) {
	case string, int64, float64, bool:
		return value
	}
	var text bytes.Buffer
	if err := path.PrintResults(&text, results[0]); err != nil {
		return nil
	}
	return text.String()
}
