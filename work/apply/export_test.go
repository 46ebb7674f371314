package apply

// FormerMark is the annotation that earlier releases put on objects.
var FormerMark = formerMark
