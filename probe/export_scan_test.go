package probe

// ValidJSON reports whether raw is JSON in UTF-8.
func ValidJSON(raw []byte) bool { return validJSON(raw) }

// ReadObject returns the members of an object as name and value by turns; ok is false for what is no object.
func ReadObject(raw []byte) (members []string, ok bool) {
	o, err := readObject(raw)
	for _, m := range o {
		members = append(members, m.name, string(m.value))
	}
	return members, err == nil
}

// ReadItems returns the first items of an array.
func ReadItems(raw []byte, most int) (list []string, more bool) {
	found, more := items(raw, most)
	for _, item := range found {
		list = append(list, string(item))
	}
	return list, more
}
