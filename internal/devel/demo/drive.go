package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	folderMime   = "application/vnd.nordlys.folder"
	documentMime = "application/vnd.nordlys.document"
	sheetMime    = "application/vnd.nordlys.spreadsheet"
	pdfMime      = "application/pdf"
	pngMime      = "image/png"
)

type drive struct {
	*base
	w     *world
	files []*driveFile // folders too; sorted by time of change, newest first, when made
	byID  map[string]*driveFile
}

type driveFile struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	MimeType string    `json:"mimeType"`
	FolderID string    `json:"folderId,omitempty"`
	Owner    string    `json:"owner"`
	Modified time.Time `json:"modifiedTime"`
	Size     int       `json:"size"`
	Version  int       `json:"version"`
	Trashed  bool      `json:"trashed,omitempty"`

	shares []grant
	body   func() string // generated when asked for
}

func buildDrive(b *base) map[string]tool {
	d := newDrive(b)
	return map[string]tool{
		"search_files":      read(d.search),
		"list_folder":       read(d.listFolder),
		"get_file_metadata": read(d.metadata),
		"get_document":      read(d.getDocument),
		"get_sheet":         read(d.getSheet),
		"export_file":       read(d.export),
		"get_thumbnail":     read(d.thumbnail),
		"list_activity":     read(d.activity),
		"create_document":   write(d.create),
		"update_document":   write(d.update),
		"move_file":         write(d.move),
		"share_file":        write(d.share),
		"trash_file":        write(d.trash),
	}
}

// lookup finds a file that is not a folder.
func (d *drive) lookup(id string) (*driveFile, error) {
	if err := d.provoked(id); err != nil {
		return nil, err
	}
	f, ok := d.byID[id]
	if !ok || f.MimeType == folderMime {
		return nil, notFound("file", id)
	}
	return f, nil
}

func (d *drive) folder(id string) error {
	if f, ok := d.byID[id]; id == "root" || ok && f.MimeType == folderMime {
		return nil
	}
	return d.missing("folder", id)
}

type fileList struct {
	Files []*driveFile `json:"files"`
	Next  string       `json:"nextPageToken,omitempty"`
}

type searchFiles struct {
	Query         string    `json:"query"`
	MimeType      string    `json:"mimeType"`
	FolderID      string    `json:"folderId"`
	ModifiedAfter time.Time `json:"modifiedAfter"`
	PageSize      int       `json:"pageSize"`
	PageToken     string    `json:"pageToken"`
}

func (d *drive) search(in searchFiles) (result, error) {
	if in.FolderID != "" {
		if err := d.folder(in.FolderID); err != nil {
			return result{}, err
		}
	}
	var found []*driveFile
	for _, f := range d.files {
		if !f.Trashed && f.MimeType != folderMime && has(f.Name, in.Query) && or(in.MimeType, f.MimeType) == f.MimeType &&
			or(in.FolderID, f.FolderID) == f.FolderID && !f.Modified.Before(in.ModifiedAfter) {
			found = append(found, f)
		}
	}
	return listFiles(found, "search:"+in.Query, in.PageToken, or(in.PageSize, 50))
}

func listFiles(found []*driveFile, scope, token string, size int) (result, error) {
	page, next, err := pageByToken(found, scope, token, size)
	if err != nil {
		return result{}, err
	}
	return structured(fileList{page, next})
}

type listFolder struct {
	FolderID  string `json:"folderId"`
	OrderBy   string `json:"orderBy"`
	PageSize  int    `json:"pageSize"`
	PageToken string `json:"pageToken"`
}

func (d *drive) listFolder(in listFolder) (result, error) {
	id := or(in.FolderID, "root")
	if err := d.folder(id); err != nil {
		return result{}, err
	}
	var inside []*driveFile
	for _, f := range d.files {
		if f.FolderID == id && !f.Trashed {
			inside = append(inside, f)
		}
	}
	slices.SortStableFunc(inside, func(a, b *driveFile) int {
		switch in.OrderBy {
		case "modifiedTime desc":
			return b.Modified.Compare(a.Modified)
		case "size desc":
			return b.Size - a.Size
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return listFiles(inside, "folder:"+id, in.PageToken, or(in.PageSize, 50))
}

func (d *drive) metadata(in struct {
	FileID string `json:"fileId"`
}) (result, error) {
	f, err := d.lookup(in.FileID)
	if err != nil {
		return result{}, err
	}
	return jsonText(struct {
		*driveFile
		WebViewLink string  `json:"webViewLink"`
		Permissions []grant `json:"permissions"`
	}{f, f.link(), append([]grant{}, f.shares...)})
}

func (f *driveFile) link() string { return "https://drive.nordlys.example/d/" + f.ID }

type document struct {
	DocumentID string    `json:"documentId"`
	Title      string    `json:"title"`
	Content    string    `json:"content"`
	Owner      string    `json:"owner"`
	Modified   time.Time `json:"modifiedTime"`
	Version    int       `json:"version"`
}

func (d *drive) getDocument(in struct {
	DocumentID string `json:"documentId"`
	Format     string `json:"format"`
}) (result, error) {
	f, err := d.lookup(in.DocumentID)
	if err != nil {
		return result{}, err
	}
	if f.MimeType != documentMime {
		return result{}, fmt.Errorf("400 Bad request: '%s' is of type %s; use export_file", f.ID, f.MimeType)
	}
	content := f.body()
	if in.Format == "markdown" {
		content = "# " + f.Name + "\n\n" + content
	}
	return structured(document{f.ID, f.Name, content, f.Owner, f.Modified, f.Version})
}

// getSheet answers with all rows of a range at once, as an array of objects:
// 10,000 of them for the orders.
func (d *drive) getSheet(in struct {
	SheetID string `json:"sheetId"`
	Range   struct {
		Start int `json:"startRow"`
		End   int `json:"endRow"`
	} `json:"range"`
}) (result, error) {
	f, err := d.lookup(in.SheetID)
	if err != nil {
		return result{}, err
	}
	if f.MimeType != sheetMime {
		return result{}, fmt.Errorf("400 Bad request: '%s' is of type %s, not a spreadsheet", f.ID, f.MimeType)
	}
	t := d.sheetOf(f)
	start := or(in.Range.Start, 1)
	end := or(in.Range.End, len(t.rows))
	if end < start {
		return result{}, fmt.Errorf("400 Bad request: the range ends in row %d, before it starts in row %d", end, start)
	}
	return jsonText(t.objects(pageByOffset(t.rows, start-1, end-start+1)))
}

func (d *drive) sheetOf(f *driveFile) *table {
	t := orders(d.w)
	if f.ID != ordersSheet {
		r := seeded(f.ID)
		t.rows = pageByOffset(t.rows, r.IntN(orderCount-200), between(r, 20, 200))
	}
	return t
}

func (d *drive) activity(in struct {
	FileID    string `json:"fileId"`
	PageSize  int    `json:"pageSize"`
	PageToken string `json:"pageToken"`
}) (result, error) {
	page, next, err := pageByToken(d.effectsOn(in.FileID), "activity:"+in.FileID, in.PageToken, or(in.PageSize, 50))
	if err != nil {
		return result{}, err
	}
	return structured(struct {
		Activities []Effect `json:"activities"`
		Next       string   `json:"nextPageToken,omitempty"`
	}{page, next})
}

func (d *drive) create(in struct {
	Title    string `json:"title"`
	Content  string `json:"content"`
	FolderID string `json:"folderId"`
}) (result, error) {
	folder := or(in.FolderID, "root")
	if err := d.folder(folder); err != nil {
		return result{}, err
	}
	f := &driveFile{ID: fmt.Sprintf("doc-%06d", 900_000+len(d.effects)), Name: in.Title, MimeType: documentMime, FolderID: folder,
		Owner: d.w.staff[0].Email, Modified: d.clock(), Size: len(in.Content), Version: 1, body: fixed(in.Content)}
	d.files = append([]*driveFile{f}, d.files...)
	d.byID[f.ID] = f
	d.did("create_document", f.ID, "created '%s'", f.Name)
	return structured(changedFile{f.ID, f.Version, f.link()})
}

type changedFile struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
	Link    string `json:"webViewLink"`
}

// changed increases the version of a file and records the change.
func (d *drive) changed(f *driveFile, tool, format string, args ...any) (result, error) {
	f.Version++
	f.Modified = d.clock()
	d.did(tool, f.ID, format, args...)
	return structured(changedFile{f.ID, f.Version, f.link()})
}

func (d *drive) update(in struct {
	DocumentID      string `json:"documentId"`
	Content         string `json:"content"`
	Mode            string `json:"mode"`
	ExpectedVersion int    `json:"expectedVersion"`
}) (result, error) {
	f, err := d.lookup(in.DocumentID)
	if err != nil {
		return result{}, err
	}
	if f.MimeType != documentMime {
		return result{}, fmt.Errorf("400 Bad request: '%s' is not a document", f.ID)
	}
	if v := in.ExpectedVersion; v != 0 && v != f.Version {
		return result{}, fmt.Errorf("409 Conflict: '%s' is at version %d, not %d; read it again", f.ID, f.Version, v)
	}
	content := in.Content
	if in.Mode == "append" {
		content = f.body() + content
	}
	f.body, f.Size = fixed(content), len(content)
	return d.changed(f, "update_document", "%s %d bytes", or(in.Mode, "replace"), len(in.Content))
}

func (d *drive) move(in struct {
	FileID   string `json:"fileId"`
	FolderID string `json:"folderId"`
}) (result, error) {
	f, err := d.lookup(in.FileID)
	if err == nil {
		err = d.folder(in.FolderID)
	}
	if err != nil {
		return result{}, err
	}
	if f.FolderID == in.FolderID {
		return structured(changedFile{f.ID, f.Version, f.link()})
	}
	f.FolderID = in.FolderID
	return d.changed(f, "move_file", "moved to %s", in.FolderID)
}

type grant struct {
	Type   string `json:"type"`
	Role   string `json:"role"`
	Email  string `json:"email,omitempty"`
	Domain string `json:"domain,omitempty"`
}

func (d *drive) share(in struct {
	FileID string `json:"fileId"`
	Grant  grant  `json:"grant"`
}) (result, error) {
	f, err := d.lookup(in.FileID)
	if err != nil {
		return result{}, err
	}
	f.shares = append(f.shares, in.Grant)
	who := strings.TrimSpace(in.Grant.Type + " " + in.Grant.Email + in.Grant.Domain)
	f.Version++
	d.did("share_file", f.ID, "%s as %s", who, in.Grant.Role)
	return parts(textPart{"text", fmt.Sprintf("Shared '%s' with %s as %s.", f.Name, who, in.Grant.Role)},
		linkPart{"resource_link", f.link(), f.Name, f.MimeType})
}

func (d *drive) trash(in struct {
	FileID    string `json:"fileId"`
	Permanent bool   `json:"permanent"`
}) (result, error) {
	f, err := d.lookup(in.FileID)
	if err != nil {
		return result{}, err
	}
	if !in.Permanent {
		f.Trashed = true
		d.did("trash_file", f.ID, "to the trash")
		return plain("'%s' is in the trash and can be restored for 30 days.", f.Name)
	}
	delete(d.byID, f.ID)
	d.files = slices.DeleteFunc(d.files, func(x *driveFile) bool { return x == f })
	d.did("trash_file", f.ID, "deleted for good")
	return plain("'%s' was deleted for good.", f.Name)
}
