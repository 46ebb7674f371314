package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	structurallisttype "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	schemaobjectmeta "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	structuralpruning "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/client-go/util/jsonpath"
	kjson "sigs.k8s.io/json"
)

// custom is the compiled form of one version of a CustomResourceDefinition.
type custom struct {
	gvk             schema.GroupVersionKind
	namespaced      bool
	preserve        bool
	structural      *structuralschema.Structural
	validator       validation.SchemaValidator
	statusValidator validation.SchemaValidator
	cel             *cel.Validator
	selectable      map[string]*jsonpath.JSONPath
	columns         []apiextensionsv1.CustomResourceColumnDefinition
}

var (
	compiledKinds    compiled[[]*Kind]
	compiledVersions compiled[*custom]
)

// FromCRD returns the served versions of a CustomResourceDefinition. Equal definitions share their Kinds.
func FromCRD(crd *apiextensionsv1.CustomResourceDefinition) ([]*Kind, error) {
	kinds, err := compiledKinds.get(&crd.Spec, "", func() ([]*Kind, error) { return fromCRD(crd.DeepCopy()) })
	return slices.Clone(kinds), err
}

func fromCRD(crd *apiextensionsv1.CustomResourceDefinition) ([]*Kind, error) {
	var out []*Kind
	preferred := true
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		c, err := compile(crd, version)
		if err != nil {
			return nil, fmt.Errorf("compile version %s of CustomResourceDefinition %s: %w", version.Name, crd.Name, err)
		}
		resource := schema.GroupVersionResource{
			Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural,
		}
		kind := &Kind{
			GVK: c.gvk, Resource: resource, Storage: resource.GroupResource(), Preferred: preferred,
			Names: Names{
				Singular: crd.Spec.Names.Singular, ListKind: crd.Spec.Names.ListKind,
				ShortNames: crd.Spec.Names.ShortNames, Categories: crd.Spec.Names.Categories,
			},
			Namespaced: c.namespaced, Verbs: AllVerbs, custom: c,
		}
		if sub := version.Subresources; sub != nil {
			kind.Subresources = Subresources{Status: sub.Status != nil, Scale: sub.Scale != nil}
		}
		preferred = false
		if stored := storedVersion(crd); stored != version.Name {
			kind.conversion.toStored = func(obj Object) { obj["apiVersion"] = crd.Spec.Group + "/" + stored }
			kind.conversion.toServed = func(obj Object) {
				obj["apiVersion"] = resource.GroupVersion().String()
				if _, err := c.coerce(obj); err == nil {
					c.defaults(obj)
				}
			}
		}
		out = append(out, kind)
	}
	return out, nil
}

func storedVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

func compile(crd *apiextensionsv1.CustomResourceDefinition,
	v apiextensionsv1.CustomResourceDefinitionVersion) (*custom, error) {
	return compiledVersions.get(&crd.Spec, v.Name, func() (*custom, error) { return newCustom(crd, *v.DeepCopy()) })
}

func newCustom(crd *apiextensionsv1.CustomResourceDefinition,
	v apiextensionsv1.CustomResourceDefinitionVersion) (*custom, error) {
	c := &custom{
		gvk:        schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind},
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		preserve:   crd.Spec.PreserveUnknownFields,
		selectable: map[string]*jsonpath.JSONPath{},
		columns:    v.AdditionalPrinterColumns,
	}
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("schema.openAPIV3Schema is required")
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		v.Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	if errs := structuralschema.ValidateStructural(nil, structural); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	if err := structuraldefaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	c.structural = structural
	if c.validator, _, err = validation.NewSchemaValidator(internal); err != nil {
		return nil, err
	}
	if status, ok := internal.Properties["status"]; ok {
		if c.statusValidator, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	c.cel = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	for _, selectable := range v.SelectableFields {
		path := jsonpath.New("selectableField").AllowMissingKeys(true)
		if err := path.Parse("{" + selectable.JSONPath + "}"); err != nil {
			return nil, fmt.Errorf("parse selectableFields path %s: %w", selectable.JSONPath, err)
		}
		c.selectable[strings.TrimPrefix(selectable.JSONPath, ".")] = path
	}
	return c, nil
}

func (c *custom) decode(body []byte) (Object, []error, error) {
	obj := Object{}
	strict, err := kjson.UnmarshalStrict(body, &obj)
	if err != nil {
		return nil, nil, err
	}
	unknown, err := c.coerce(obj)
	if err != nil {
		return nil, nil, err
	}
	c.defaults(obj)
	return obj, append(strict, unknown...), nil
}

// coerce prunes an object and converts its metadata to the form of the Go type. It returns the unknown fields as
// errors.
func (c *custom) coerce(obj Object) ([]error, error) {
	kind, apiVersion := obj["kind"], obj["apiVersion"]
	metadata, found, paths, err := schemaobjectmeta.GetObjectMetaWithOptions(obj,
		schemaobjectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	if !c.preserve {
		paths = append(paths, structuralpruning.PruneWithOptions(obj, c.structural, true,
			structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		structuraldefaulting.PruneNonNullableNullsWithoutDefaults(obj, c.structural)
	}
	fieldErr, more := schemaobjectmeta.CoerceWithOptions(nil, obj, c.structural, false,
		schemaobjectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if fieldErr != nil {
		return nil, fieldErr
	}
	obj["kind"], obj["apiVersion"] = kind, apiVersion
	if found {
		if err := schemaobjectmeta.SetObjectMeta(obj, metadata); err != nil {
			return nil, err
		}
	}
	var unknown []error
	for _, path := range append(paths, more...) {
		unknown = append(unknown, fmt.Errorf("unknown field %q", path))
	}
	return unknown, nil
}

func (c *custom) defaults(obj Object) { structuraldefaulting.Default(obj, c.structural) }

func (c *custom) validateCreate(ctx context.Context, obj Object) field.ErrorList {
	errs := c.metadata(obj, nil)
	errs = append(errs, validation.ValidateCustomResource(nil, obj, c.validator)...)
	errs = append(errs, schemaobjectmeta.Validate(ctx, nil, obj, c.structural, false)...)
	errs = append(errs, structurallisttype.ValidateListSetsAndMaps(nil, c.structural, obj)...)
	return append(errs, c.rules(ctx, errs, obj, nil)...)
}

func (c *custom) validateUpdate(ctx context.Context, obj, old Object, subresource string) field.ErrorList {
	correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: c.structural})
	errs := c.metadata(obj, old)
	if subresource == "" {
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj, old, c.validator,
			validation.WithRatcheting(correlated))...)
		errs = append(errs, schemaobjectmeta.Validate(ctx, nil, obj, c.structural, false)...)
	} else if status, has := obj["status"]; has && c.statusValidator != nil {
		errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"],
			c.statusValidator, validation.WithRatcheting(correlated.Key("status")))...)
	}
	if len(structurallisttype.ValidateListSetsAndMaps(nil, c.structural, old)) == 0 {
		errs = append(errs, structurallisttype.ValidateListSetsAndMaps(nil, c.structural, obj)...)
	}
	return append(errs, c.rules(ctx, errs, obj, old, cel.WithRatcheting(correlated))...)
}

// metadata validates the metadata of an object as kube-apiserver does. Old is nil for a new object.
func (c *custom) metadata(obj, old Object) field.ErrorList {
	path := field.NewPath("metadata")
	metadata, err := objectMeta(obj)
	if err != nil {
		return field.ErrorList{field.Invalid(path, nil, err.Error())}
	}
	if old == nil {
		return apivalidation.ValidateObjectMetaAccessor(metadata, c.namespaced, apivalidation.NameIsDNSSubdomain, path)
	}
	oldMetadata, err := objectMeta(old)
	if err != nil {
		return field.ErrorList{field.Invalid(path, nil, err.Error())}
	}
	errs := apivalidation.ValidateObjectMetaAccessor(metadata, c.namespaced, pathSegment, path)
	errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(metadata, oldMetadata, path)...)
	return append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(metadata, oldMetadata, path)...) // as registries do
}

func objectMeta(obj Object) (*metav1.ObjectMeta, error) {
	metadata := &metav1.ObjectMeta{}
	return metadata, FromObject(meta(obj), metadata)
}

// rules evaluates the CEL rules, unless the object has errors that would make the rules fail.
func (c *custom) rules(ctx context.Context, errs field.ErrorList, obj, old Object,
	options ...cel.Option) field.ErrorList {
	if c.cel == nil {
		return nil
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was "+
				"invalid; correct the existing errors to complete validation")}
		}
	}
	var before any
	if old != nil {
		before = old
	}
	found, _ := c.cel.Validate(ctx, nil, c.structural, obj, before, celconfig.RuntimeCELCostBudget, options...)
	return found
}

func (c *custom) fields(obj Object, set fields.Set) {
	for label, path := range c.selectable {
		set[label] = ""
		results, err := path.FindResults(obj)
		if err == nil && len(results) == 1 && len(results[0]) == 1 && results[0][0].Interface() != nil {
			set[label] = fmt.Sprint(results[0][0].Interface())
		}
	}
}

// Columns returns the columns of tables of the kind that follow the name.
func (k *Kind) Columns() []apiextensionsv1.CustomResourceColumnDefinition {
	if k.custom != nil && len(k.custom.columns) > 0 {
		return k.custom.columns
	}
	return []apiextensionsv1.CustomResourceColumnDefinition{{
		Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	}}
}
