package pictures

import (
	"math"
	"strconv"
)

// colour is the role of a colour in a picture. A Palette maps roles to actual colours.
type colour string

const (
	page   colour = "page"  // background of the page
	area   colour = "area"  // inside of a boundary
	plain  colour = "plain" // a box
	edge   colour = "edge"  // edge of a box
	faint  colour = "faint" // edge of an area, and lines of a chart
	ink    colour = "ink"
	muted  colour = "muted" // less important text, and arrows
	accent colour = "accent"
	tint   colour = "tint" // box that belongs to Retort
	good   colour = "good"
	mint   colour = "mint" // box that shows something good
	bad    colour = "bad"
	rose   colour = "rose" // box that shows something bad
	bar1   colour = "bar1" // bars of direct calls
	bar2   colour = "bar2"
	shell  colour = "shell" // background of a terminal
)

// Palette maps the roles of colours to hexadecimal RGB values.
type Palette map[colour]string

// Palettes returns the palettes by the suffix of the files that use them.
func Palettes() map[string]Palette {
	return map[string]Palette{
		"light": {
			page: "#ffffff", area: "#fafbfc", plain: "#f3f5f8", edge: "#c5ccd6", faint: "#b4bcc8",
			ink: "#1f2328", muted: "#535d69", accent: "#0b57b7", tint: "#e8f1fc",
			good: "#176f32", mint: "#e6f5ea", bad: "#ad2118", rose: "#fcebe9",
			bar1: "#8b96a5", bar2: "#b9c1cc", shell: "#f6f8fa",
		},
		"dark": {
			page: "#0d1117", area: "#11161d", plain: "#1b222b", edge: "#444d58", faint: "#4b5561",
			ink: "#e6edf3", muted: "#a3adb9", accent: "#79b8ff", tint: "#10253f",
			good: "#5fd36f", mint: "#112a1a", bad: "#ff938a", rose: "#331a1b",
			bar1: "#7d8896", bar2: "#515b67", shell: "#161b22",
		},
	}
}

// contrast returns the contrast ratio of two colours as WCAG defines it, from 1 to 21.
func contrast(a, b string) float64 {
	l1, l2 := luminance(a), luminance(b)
	return (max(l1, l2) + 0.05) / (min(l1, l2) + 0.05)
}

func luminance(hex string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, _ := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		v := float64(n) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}
