package demo

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	transcriptID    = "abc123" // ID of the document of 50,000 tokens
	transcriptBytes = 194_612
	ordersSheet     = "orders-2026"  // ID of the spreadsheet of 10,000 rows
	limitedID       = "rate-limited" // ID of the document that can be read every second time
	folderCount     = 40
	fileCount       = 2400
)

func newDrive(b *serverBase) *driveServer {
	d := &driveServer{serverBase: b, w: newWorld(), byID: map[string]*driveFile{}}
	r := newSeededRand("drive")
	for i := range folderCount {
		d.addFile(&driveFile{ID: fmt.Sprintf("fld-%03d", i+1), Name: d.w.companies[i*7].Name, MimeType: folderMime, FolderID: "root"})
	}
	for i := range fileCount {
		d.addFile(d.newFile(r, i))
	}
	d.addFile(&driveFile{ID: transcriptID, Name: "Quarterly account review, meeting transcript", MimeType: documentMime, FolderID: "fld-001", Size: transcriptBytes,
		body: func() string { return makeTranscript(d.w, "transcript", transcriptTurns) }})
	d.addFile(&driveFile{ID: limitedID, Name: "Minutes that many want to read", MimeType: documentMime, FolderID: "fld-002", Size: 4000,
		body: func() string { return d.makeEssay(limitedID) }})
	d.addFile(&driveFile{ID: ordersSheet, Name: "Orders 2025-2026", MimeType: sheetMime, FolderID: "root", Size: 1_180_000})
	slices.SortStableFunc(d.files, func(x, y *driveFile) int { return y.Modified.Compare(x.Modified) })
	return d
}

// addFile sets the properties that every file has and stores the file.
func (d *driveServer) addFile(f *driveFile) {
	r := newSeededRand("file " + f.ID)
	f.Owner, f.Modified, f.Version = pickOne(r, d.w.staff).Email, daysAgo(r, r.IntN(700)), randomBetween(r, 1, 30)
	d.files = append(d.files, f)
	d.byID[f.ID] = f
}

// newFile returns one of the many ordinary files of a company, with a random kind and name.
func (d *driveServer) newFile(r *rand.Rand, i int) *driveFile {
	c := pickOne(r, d.w.companies)
	id := fmt.Sprintf("doc-%06d", 100_000+i)
	f := &driveFile{
		ID: id, MimeType: documentMime, FolderID: fmt.Sprintf("fld-%03d", randomBetween(r, 1, folderCount)),
		Size: randomBetween(r, 2000, 9000),
	}
	switch dice := r.IntN(100); {
	case dice < 15:
		f.Name = c.Name + ", meeting transcript"
		f.body = func() string { return makeTranscript(d.w, id, 40) }
	case dice < 60:
		f.Name = pickOne(r, []string{"Proposal for ", "Site survey ", "Acceptance protocol ", "Account plan ", "Minutes "}) + c.Name
		f.body = func() string { return d.makeEssay(id) }
	case dice < 75:
		f.Name, f.MimeType, f.Size = "Orders of "+c.Name, sheetMime, randomBetween(r, 9000, 90_000)
	case dice < 90:
		f.Name, f.MimeType, f.Size = pickOne(r, []string{
			"Invoice ", "Contract ", "Certificate ",
		})+c.Name+".pdf", pdfMime, randomBetween(r, 40_000, 900_000)
		f.body = func() string { return d.makeEssay(id) }
	default:
		f.Name, f.MimeType, f.Size = "Site "+c.City+" "+c.Name+".png", pngMime, randomBetween(r, 200_000, 4_000_000)
	}
	return f
}

// makeEssay returns the text of an ordinary document of one or two pages.
func (d *driveServer) makeEssay(id string) string {
	r := newSeededRand(id)
	a := newAuthor(d.w, "document", r)
	var b strings.Builder
	for range randomBetween(r, 3, 8) {
		b.WriteString(a.writeParagraph(randomBetween(r, 2, 5)) + "\n\n")
	}
	return strings.TrimSpace(b.String())
}

func (d *driveServer) exportFile(in struct {
	FileID string `json:"fileId"`
	Format string `json:"format"`
}) (toolResult, error) {
	f, err := d.findFile(in.FileID)
	if err != nil {
		return toolResult{}, err
	}
	uri := f.webLink() + "/export?format=" + in.Format
	isSheet := f.MimeType == sheetMime
	switch {
	case in.Format == "csv" && isSheet:
		return partsResult(resourcePart{"resource", resourceContent{URI: uri, MimeType: "text/csv", Text: asCSV(d.sheetOf(f))}})
	case in.Format == "txt" && f.body != nil:
		return partsResult(resourcePart{"resource", resourceContent{URI: uri, MimeType: "text/plain", Text: f.body()}})
	case in.Format == "pdf" && f.body != nil:
		return partsResult(textPart{"text", "Exported '" + f.Name + "' as PDF."},
			resourcePart{"resource", resourceContent{URI: uri, MimeType: pdfMime, Blob: asPDF(f.Name)}})
	}
	return toolResult{}, fmt.Errorf("400 Bad request: '%s' of type %s cannot be exported as %s", f.ID, f.MimeType, in.Format)
}

func asCSV(t *dataTable) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(t.colNames()) // a strings.Builder takes everything
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = fmt.Sprint(v)
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return b.String()
}

// asPDF returns a minimal PDF file that readers can open, with one page and a title.
func asPDF(title string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	text := "BT /F1 18 Tf 72 760 Td (" + strings.NewReplacer("(", "", ")", "", `\`, "").Replace(title) + ") Tj ET"
	var offsets []int
	for i, object := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	} {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

func (d *driveServer) makeThumbnail(in struct {
	FileID string `json:"fileId"`
	Size   int    `json:"size"`
}) (toolResult, error) {
	f, err := d.findFile(in.FileID)
	if err != nil {
		return toolResult{}, err
	}
	return partsResult(imagePart{"image", asPNG(f.ID, orDefault(in.Size, 64)), pngMime})
}

// asPNG returns a picture with a pattern that depends on an id.
func asPNG(id string, size int) []byte {
	r := newSeededRand(id)
	palette := color.Palette{color.White}
	for range 5 {
		palette = append(palette, color.RGBA{uint8(r.IntN(256)), uint8(r.IntN(256)), uint8(r.IntN(256)), 255})
	}
	img := image.NewPaletted(image.Rect(0, 0, size, size), palette)
	for y := range size {
		for x := range size {
			img.SetColorIndex(x, y, uint8((x*y/max(size/8, 1)+x/8)%len(palette)))
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a bytes.Buffer takes everything
	return b.Bytes()
}
