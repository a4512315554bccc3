package web

// Themes that somebody can choose. Without one, the pages look as the system does.
const (
	ThemeLight = "light"
	ThemeDark  = "dark"
)

// Languages are what the pages can be read in, where there is a choice.
func (f Frame) Languages() []Language {
	if len(languages) < 2 {
		return nil
	}
	return Languages()
}
