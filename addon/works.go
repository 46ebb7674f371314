package addon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/workwriter"
	"github.com/muster-sdk/muster/placement/bundle"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// record is the part of a Work of an add-on that the controller caches: its state, and the hashes that are needed to
// compare its manifests with the desired ones. It is immutable.
type record struct {
	metav1.ObjectMeta // name, versions, labels and annotations

	existing bundle.Existing
	health   health.Work
	jobs     removal.Hook // the state of the hooks, if the Work contains hooks
	revision string
	since    time.Time
	parts    bool // hooks run before the removal

	credential *bundle.Object // the credential without its text; nil: none
}

// workBase returns the beginning of the names of a MemberAddon's Works in a namespace. Names of WorkSets' Works
// contain a '.' earlier. A hosting member has Works of several MemberAddons; there the name contains a hash of the
// owner, which an agent cannot forge.
func workBase(owner types.NamespacedName, namespace string) string {
	if namespace == owner.Namespace {
		return "addon-" + owner.Name
	}
	return "addon-" + template.HostingNamespace(owner.Name, owner.Namespace)
}

// workLabels returns the labels of the Works of a MemberAddon in a namespace.
func workLabels(owner types.NamespacedName, namespace string) map[string]string {
	all := map[string]string{v1alpha1.AddonLabel: owner.Name}
	if namespace != owner.Namespace {
		all[v1alpha1.HostedForLabel] = owner.Namespace
	}
	return all
}

// hooksName returns the name of the Work with a MemberAddon's hooks in a namespace. All other names end with a
// number.
func hooksName(owner types.NamespacedName, namespace string) string {
	return workBase(owner, namespace) + "-hooks"
}

// worksInformer returns an informer that watches the Works of add-ons, and caches only records of them.
func worksInformer(c client.WithWatch) (toolscache.SharedIndexInformer, error) {
	informer := toolscache.NewSharedIndexInformer(listWatch(c, func() client.ObjectList {
		return &workv1alpha1.WorkList{}
	}), &workv1alpha1.Work{}, 0,
		toolscache.Indexers{ownerIndex: func(object any) ([]string, error) {
			if owner := object.(*record).owner(); owner.Name != "" {
				return []string{owner.String()}, nil
			}
			return nil, nil
		}})
	return informer, informer.SetTransform(func(object any) (any, error) {
		if work, is := object.(*workv1alpha1.Work); is {
			return recordOf(work), nil
		}
		return object, nil
	})
}

// listWatch returns a ListWatch of objects with the label of add-ons.
func listWatch(c client.WithWatch, list func() client.ObjectList) *toolscache.ListWatch {
	ours := client.HasLabels{v1alpha1.AddonLabel}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			found := list()
			return found, c.List(ctx, found, ours, &client.ListOptions{Raw: &options})
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list(), ours, &client.ListOptions{Raw: &options})
		},
	}
}

// ownerIndex is the index of Works by MemberAddon.
const ownerIndex = "muster-addon"

// owner returns the MemberAddon of a Work. Zero: none. An agent can change the labels of a Work, so the name of the
// Work must match as well: otherwise an agent could assign it to another member.
func (r *record) owner() types.NamespacedName {
	key := keyOf(firstOf(r.Labels[v1alpha1.HostedForLabel], r.Namespace), r.Labels[v1alpha1.AddonLabel])
	if key.Namespace != r.Namespace && r.Name[:max(strings.LastIndex(r.Name, "-"), 0)] != workBase(key, r.Namespace) {
		return types.NamespacedName{}
	}
	return key
}

// hosted reports whether the Work is in the namespace of another member than its owner.
func (r *record) hosted() bool { return r.Namespace != r.owner().Namespace }

// isHooks reports whether the Work contains hooks.
func (r *record) isHooks() bool { return r.Name == hooksName(r.owner(), r.Namespace) }

func recordOf(work *workv1alpha1.Work) *record {
	r := &record{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: work.Namespace, Name: work.Name, UID: work.UID, ResourceVersion: work.ResourceVersion,
			Generation:        work.Generation,
			DeletionTimestamp: work.DeletionTimestamp,
			Labels:            bounded.Metadata(work.Labels), Annotations: bounded.Metadata(work.Annotations),
		},
		existing: bundle.Existing{
			Work: bundle.Read(work.Name, work.Spec.Manifests), Options: bundle.HashOptions(&work.Spec),
			Processed: bundle.Processed(work), Deleting: work.DeletionTimestamp != nil,
		},
		health: health.Of(work), revision: work.Annotations[v1alpha1.RevisionAnnotation],
		parts: work.Annotations[v1alpha1.PreDeleteAnnotation] == "true",
	}
	r.existing.Marked = generated(work, r.owner())
	for i := range r.existing.Objects {
		o := &r.existing.Objects[i]
		if isCredential(o, work.Labels[v1alpha1.AddonLabel]) {
			r.credential = o
		}
		o.JSON = nil
	}
	if r.isHooks() {
		r.jobs = removal.JobsOf(work)
	}
	if since, err := time.Parse(time.RFC3339Nano, work.Annotations[v1alpha1.RevisionSinceAnnotation]); err == nil {
		r.since = since
	}
	return r
}

// works returns the Works of a MemberAddon, and the Works with its hooks, on all members.
func (c *shared) works(key types.NamespacedName) (works, hooks []*record, _ error) {
	found, err := c.worksInformer.GetIndexer().ByIndex(ownerIndex, key.String())
	if err != nil {
		return nil, nil, err
	}
	for _, object := range found {
		r := object.(*record)
		if r.isHooks() {
			hooks = append(hooks, r)
			continue
		}
		works = append(works, r)
	}
	return works, hooks, nil
}

// assignment is the revision of a member, and when it was assigned.
type assignment struct {
	revision string
	since    time.Time
}

// written is the last write of a Work by this process.
type written struct {
	uid         types.UID
	generation  int64
	fingerprint bundle.Fingerprint
}

// distribution is the desired state of the Works of a MemberAddon for one cluster.
type distribution struct {
	*part
	key       types.NamespacedName
	by        types.UID // of the MemberAddon
	namespace string    // of the cluster: the MemberAddon's, or that of a hosting member
	assigned  assignment
	written   map[types.NamespacedName]written // kept between reconciles
}

// hasHooks reports whether hooks run before the add-on is removed.
func (d *distribution) hasHooks() bool { return len(d.hooks) > 0 }

// distribute updates the Works of an add-on, and reports whether they were up to date. The caller repeats it until it
// returns true.
func (c *shared) distribute(ctx context.Context, d *distribution, has []*record) (current bool, err error) {
	options, existing, byName := bundle.HashOptions(&d.spec), make([]bundle.Existing, len(has)),
		make(map[string]*record, len(has))
	for i, r := range has {
		existing[i] = r.existing
		existing[i].Noted = r.revision == d.assigned.revision && r.parts == d.hasHooks()
		if w, is := d.written[keyOf(r.Namespace, r.Name)]; is && w.uid == r.UID && w.generation == r.Generation {
			existing[i].Written = &w.fingerprint
		}
		byName[r.Name] = r
	}
	steps, err := bundle.Arrange(workBase(d.key, d.namespace), existing,
		bundle.Wanted{Objects: d.objects, Options: options})
	if err != nil {
		return false, err
	}
	for i := range steps {
		if steps[i].Waits != "" {
			continue // the event that ends the wait causes another reconcile
		}
		if err := c.applyStep(ctx, d, &steps[i], byName[steps[i].Work.Name], options); err != nil {
			return false, fmt.Errorf("%s Work %s/%s: %w", steps[i].Act, d.namespace, steps[i].Work.Name, err)
		}
	}
	return len(steps) == 0, nil
}

// applyStep executes a step. It returns a conflict if the Work differs from the observed one.
func (c *shared) applyStep(ctx context.Context, d *distribution, s *bundle.Step, has *record,
	options bundle.Hash) error {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: s.Work.Name}}
	if s.Act == bundle.Delete {
		return c.deleteWork(ctx, has, d.by)
	}
	notes := map[string]string{workv1alpha1.GeneratedByAnnotation: generatedBy(d.key)}
	if s.First {
		notes[v1alpha1.RevisionAnnotation], notes[v1alpha1.RevisionSinceAnnotation] = d.assigned.revision,
			d.assigned.since.UTC().Format(time.RFC3339Nano)
		if d.hasHooks() || has != nil && has.parts {
			notes[v1alpha1.PreDeleteAnnotation] = strconv.FormatBool(d.hasHooks())
		}
	}
	spec := d.spec
	spec.Manifests = s.Work.Manifests()
	if s.Act == bundle.Create {
		work.Labels, work.Annotations, work.Spec = workLabels(d.key, d.namespace), notes, spec
		if err := c.writer().Create(ctx, work); apierrors.IsAlreadyExists(err) {
			return c.nameConflict(ctx, d.key, client.ObjectKeyFromObject(work))
		} else if err != nil {
			return err
		}
	} else {
		change := workwriter.Change{Known: &has.ObjectMeta, Annotations: notes}
		if s.Act == bundle.Update {
			change.Spec = &spec
		}
		changed, err := c.writer().Update(ctx, change)
		if apierrors.IsNotFound(err) {
			return errRetry
		} else if err != nil {
			return err
		}
		work = changed
	}
	if s.Act != bundle.Note {
		d.written[client.ObjectKeyFromObject(work)] = written{work.UID, work.Generation,
			bundle.Fingerprint{Objects: s.Work.Hash, Options: options}}
	}
	return nil
}

func (c *shared) writer() workwriter.Writer { return workwriter.Writer{Client: c.client} }

// errNotOwned is the error of a Work that has the name of a Work of the add-on and another owner.
var errNotOwned = errors.New("the object does not belong to the add-on")

// nameConflict returns an error that depends on the owner of an existing Work: errRetry if the owner is this
// MemberAddon, whose cache does not contain the Work yet, or errNotOwned.
func (c *shared) nameConflict(ctx context.Context, owner, key types.NamespacedName) error {
	work := &metav1.PartialObjectMetadata{}
	work.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("Work"))
	switch err := c.live.Get(ctx, key, work); {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil, (&record{ObjectMeta: work.ObjectMeta}).owner() == owner:
		return errRetry
	}
	return fmt.Errorf("%w but has the name of its Work: delete or rename the object", errNotOwned)
}
